// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/checkpoint_holders.h"

#include "absl/status/statusor.h"
#include "common/base/mutation.h"
#include "common/job/job_options.h"
#include "common/plan/model_cut.h"
#include "common/plan/partition_plan.h"
#include "common/plan/plan_codec.h"

namespace tributary {

namespace {

// The ranks that write a file.
uint32_t WritingRanks(const v1::JobSpec& job, const v1::Plan& plan) {
  const Strategy strategy = StrategyOf(job);
  const auto all = static_cast<uint32_t>(plan.num_workers());
  if (strategy.uses_servers()) {
    return strategy.checkpoints_residuals() &&
                   !TRIBUTARY_MUTATED("residuals-not-awaited")
               ? all
               : 0;
  }
  // Replicas are equal, so one writes. Sharded optimizer state differs in every
  // rank.
  return strategy.exchange == Exchange::kShardedAllReduce
             ? all
             : static_cast<uint32_t>(strategy.mesh().model_size());
}

}  // namespace

std::vector<CheckpointWriter> CheckpointHolders(const v1::JobSpec& job,
                                                const v1::Plan& plan) {
  std::vector<CheckpointWriter> holders;
  if (StrategyOf(job).uses_servers()) {
    const absl::StatusOr<PartitionPlan> cut = MakePartitionPlan(plan);
    for (int shard = 0; cut.ok() && shard < cut->num_shards(); ++shard) {
      if (cut->blocks(shard).empty()) continue;
      holders.push_back({v1::ROLE_SERVER, static_cast<uint32_t>(shard)});
    }
  }
  for (uint32_t rank = 0; rank < WritingRanks(job, plan); ++rank) {
    holders.push_back({v1::ROLE_WORKER, rank});
  }
  return holders;
}

uint32_t FirstHolderOf(const v1::Plan& plan, size_t parameter) {
  const v1::ParameterSpec& spec = plan.parameters(static_cast<int>(parameter));
  return static_cast<uint32_t>(
      FirstHolder({spec.stage() - 1, spec.tensor() - 1}, MeshOf(plan)));
}

}  // namespace tributary
