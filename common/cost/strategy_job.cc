// SPDX-License-Identifier: Apache-2.0
#include "common/cost/strategy_job.h"

#include <cstdint>

#include "absl/strings/strip.h"
#include "common/job/job_options.h"
#include "common/job/resolve.h"
#include "common/job/validate/validate.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

void SetExchange(const Strategy& strategy, v1::StrategySpec* spec) {
  switch (strategy.exchange) {
    case Exchange::kParameterServer:
      // Workers that share a model require bulk-synchronous steps.
      if (strategy.tensor * strategy.stages > 1) {
        spec->mutable_parameter_server()->clear_sync();
      }
      spec->mutable_parameter_server();
      return;
    case Exchange::kAllReduce:
    case Exchange::kShardedAllReduce:
      spec->mutable_all_reduce()->set_sharded(strategy.exchange ==
                                              Exchange::kShardedAllReduce);
      return;
    case Exchange::kThreads:
      spec->mutable_data_parallel();
      return;
  }
}

void SetCuts(const Strategy& strategy, v1::StrategySpec* spec) {
  if (strategy.tensor > 1) {
    spec->mutable_tensor_parallel()->set_ranks(strategy.tensor);
  } else {
    spec->clear_tensor_parallel();
  }
  if (strategy.stages == 1) return spec->clear_pipeline_parallel();
  v1::PipelineParallelSpec* pipeline = spec->mutable_pipeline_parallel();
  pipeline->set_stages(strategy.stages);
  pipeline->set_micro_batches(strategy.micro_batches);
  pipeline->set_schedule(strategy.schedule == PipelineSchedule::kGpipe
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
  TRIBUTARY_RETURN_IF_ERROR(ResolveFields("", JobPart::kWhole, &places, job));
  return ValidateJob(places, *job);
}

}  // namespace

absl::StatusOr<v1::JobSpec> JobWithStrategy(const v1::JobSpec& job,
                                            const Strategy& strategy) {
  v1::JobSpec made = job;
  SetExchange(strategy, made.mutable_strategy());
  SetCuts(strategy, made.mutable_strategy());
  made.mutable_cluster()->set_workers(strategy.workers);
  if (strategy.uses_servers()) {
    made.mutable_cluster()->set_servers(strategy.servers);
  }
  ShareBatch(StrategyOf(job).mesh().data, strategy.mesh().data,
             made.mutable_data());
  if (const absl::Status checked = Check(&made); !checked.ok()) {
    absl::string_view why = checked.message();
    absl::ConsumePrefix(&why, ": ");  // the job is in no file
    return absl::InvalidArgumentError(why);
  }
  return made;
}

}  // namespace tributary
