#include "common/cost/strategy_job.h"

#include <cstdint>

#include "absl/strings/strip.h"
#include "common/job/job_options.h"
#include "common/job/resolve.h"
#include "common/job/validate/validate.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

void SetExchange(const StrategyShape& shape, v1::StrategySpec* strategy) {
  switch (shape.exchange) {
    case Exchange::kParameterServer:
      // Workers that share a model require bulk-synchronous steps.
      if (shape.tensor * shape.stages > 1) {
        strategy->mutable_parameter_server()->clear_sync();
      }
      strategy->mutable_parameter_server();
      return;
    case Exchange::kAllReduce:
    case Exchange::kShardedAllReduce:
      strategy->mutable_all_reduce()->set_sharded(shape.exchange ==
                                                  Exchange::kShardedAllReduce);
      return;
    case Exchange::kThreads:
      strategy->mutable_data_parallel();
      return;
  }
}

void SetCuts(const StrategyShape& shape, v1::StrategySpec* strategy) {
  if (shape.tensor > 1) {
    strategy->mutable_tensor_parallel()->set_ranks(shape.tensor);
  } else {
    strategy->clear_tensor_parallel();
  }
  if (shape.stages == 1) return strategy->clear_pipeline_parallel();
  v1::PipelineParallelSpec* pipeline = strategy->mutable_pipeline_parallel();
  pipeline->set_stages(shape.stages);
  pipeline->set_micro_batches(shape.micro_batches);
  pipeline->set_schedule(shape.schedule == PipelineSchedule::kGpipe
                             ? v1::PIPELINE_SCHEDULE_GPIPE
                             : v1::PIPELINE_SCHEDULE_1F1B);
}

// Distributes the batch of all workers over the new number of replicas.
void ShareBatch(int64_t old_replicas, int64_t replicas, v1::DataSpec* data) {
  if (!data->has_batch_size()) return;
  const int64_t all = data->batch_size() * old_replicas;
  if (all % replicas == 0) {
    data->set_batch_size(all / replicas);
  } else {
    data->set_global_batch_size(all);
  }
}

absl::Status Check(v1::JobSpec* job) {
  Places places;
  places.Record("", "");
  TRIBUTARY_RETURN_IF_ERROR(ResolveFields("", &places, job));
  return ValidateJob(places, *job);
}

}  // namespace

absl::StatusOr<v1::JobSpec> JobWithStrategy(const v1::JobSpec& job,
                                            const StrategyShape& shape,
                                            int workers) {
  v1::JobSpec made = job;
  SetExchange(shape, made.mutable_strategy());
  SetCuts(shape, made.mutable_strategy());
  made.mutable_cluster()->set_workers(workers);
  if (shape.exchange == Exchange::kParameterServer) {
    made.mutable_cluster()->set_servers(shape.servers);
  }
  ShareBatch(DeviceMeshOf(job).data, workers / (shape.tensor * shape.stages),
             made.mutable_data());
  if (const absl::Status checked = Check(&made); !checked.ok()) {
    absl::string_view why = checked.message();
    absl::ConsumePrefix(&why, ": ");  // the job is in no file
    return absl::InvalidArgumentError(why);
  }
  return made;
}

}  // namespace tributary
