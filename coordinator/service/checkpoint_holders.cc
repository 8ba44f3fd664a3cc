#include "coordinator/service/checkpoint_holders.h"

#include "absl/status/statusor.h"
#include "common/job/job_options.h"
#include "common/plan/model_cut.h"
#include "common/plan/partition_plan.h"
#include "common/plan/plan_codec.h"

namespace tributary {

std::vector<uint32_t> CheckpointHolders(const v1::JobSpec& job,
                                        const v1::Plan& plan) {
  std::vector<uint32_t> holders;
  if (!StrategyOf(job).uses_servers()) {
    // Replicas are equal, so one writes. Sharded optimizer state differs in
    // every rank.
    const uint32_t ranks = job.strategy().all_reduce().sharded()
                               ? plan.num_workers()
                               : StrategyOf(job).mesh().model_size();
    for (uint32_t rank = 0; rank < ranks; ++rank) holders.push_back(rank);
    return holders;
  }
  const absl::StatusOr<PartitionPlan> cut = MakePartitionPlan(plan);
  for (int shard = 0; cut.ok() && shard < cut->num_shards(); ++shard) {
    if (!cut->blocks(shard).empty()) holders.push_back(shard);
  }
  return holders;
}

uint32_t FirstHolderOf(const v1::Plan& plan, size_t parameter) {
  const v1::ParameterSpec& spec = plan.parameters(static_cast<int>(parameter));
  return static_cast<uint32_t>(
      FirstHolder({spec.stage() - 1, spec.tensor() - 1}, MeshOf(plan)));
}

}  // namespace tributary
