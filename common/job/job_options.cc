// SPDX-License-Identifier: Apache-2.0
#include "common/job/job_options.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/optimizer/optimizer.h"
#include "common/wire/wire_format.h"

namespace tributary {
namespace {

Transport TransportOf(v1::TransportKind kind) {
  switch (kind) {
    case v1::TRANSPORT_KIND_GRPC:
      return Transport::kGrpc;
    case v1::TRANSPORT_KIND_SHARED_MEMORY:
      return Transport::kSharedMemory;
    default:
      return Transport::kAuto;
  }
}

// Returns the bytes of an element in a large tensor.
double BytesOf(const Encoding* encoding) {
  constexpr int64_t kElements = 1 << 20;
  TRIBUTARY_CHECK(encoding != nullptr);
  return static_cast<double>(encoding->Bytes(kElements)) / kElements;
}

}  // namespace

Strategy StrategyOf(const v1::JobSpec& job) {
  const v1::StrategySpec& spec = job.strategy();
  const v1::PipelineParallelSpec& pipeline = spec.pipeline_parallel();
  Strategy strategy;
  strategy.workers = job.cluster().workers();
  strategy.servers = std::max(1, job.cluster().servers());
  strategy.tensor = std::max(1, spec.tensor_parallel().ranks());
  strategy.stages = std::max(1, pipeline.stages());
  if (strategy.stages > 1) {
    strategy.micro_batches = std::max(1, pipeline.micro_batches());
  }
  if (pipeline.schedule() == v1::PIPELINE_SCHEDULE_GPIPE) {
    strategy.schedule = PipelineSchedule::kGpipe;
  }
  const auto without_servers = [&strategy](Exchange exchange,
                                           const auto& exchanges) {
    strategy.exchange = exchange;
    strategy.bucket_bytes = exchanges.bucket_bytes();
    strategy.first_bucket_bytes = exchanges.first_bucket_bytes();
    strategy.timeout_seconds = exchanges.timeout_seconds();
  };
  if (spec.has_all_reduce()) {
    without_servers(spec.all_reduce().sharded() ? Exchange::kShardedAllReduce
                                                : Exchange::kAllReduce,
                    spec.all_reduce());
  } else if (spec.has_data_parallel()) {
    without_servers(Exchange::kThreads, spec.data_parallel());
  } else {
    const v1::ParameterServerSpec& server = spec.parameter_server();
    strategy.transport = TransportOf(server.transport());
    strategy.bucket_bytes = server.bucket_bytes();
    strategy.gradient_bytes =
        BytesOf(EncodingOf(server.wire(), server.top_k_fraction()));
    strategy.weight_bytes = BytesOf(EncodingOf(server.weights_wire()));
    strategy.error_feedback = server.error_feedback();
    strategy.timeout_seconds = server.sync_timeout_seconds();
    strategy.exchange_every = static_cast<int>(std::min<int64_t>(
        StepCountOf(job).steps_an_update, std::numeric_limits<int>::max()));
    strategy.bulk_synchronous = SyncTraitsOf(job).bulk_synchronous();
    strategy.delay = static_cast<int>(SyncTraitsOf(job).delay);
  }
  return strategy;
}

bool CutsLogits(const v1::JobSpec& job) {
  return job.training().loss().has_cross_entropy();
}

OptimizerOptions ServerOptimizerOptionsOf(const v1::JobSpec& job) {
  if (!SyncTraitsOf(job).updates_locally) {
    return OptimizerOptionsOf(job.training().optimizer());
  }
  const v1::OuterSpec& outer =
      job.strategy().parameter_server().sync().local_sgd().outer();
  OptimizerOptions options = OptimizerOf("sgd", outer.learning_rate());
  options.momentum = outer.momentum();
  options.nesterov = outer.nesterov();
  options.takes_running_averages = true;
  return options;
}

std::vector<std::string> ServerStatesOf(const v1::JobSpec& job) {
  return ServerStatesOf(ServerOptimizerOptionsOf(job), SyncTraitsOf(job).delay);
}

std::vector<std::string> ServerStatesOf(const OptimizerOptions& optimizer,
                                        int64_t delay) {
  std::vector<std::string> names = Optimizer(optimizer).state_names();
  if (delay > 0) names.emplace_back("previous_weights");
  return names;
}

ReplacedMean ReplacedMeanOf(const v1::JobSpec& job) {
  if (job.program().buffers() == v1::BUFFERS_RANK0) {
    return ReplacedMean::kOfRank0;
  }
  return job.has_program() || SyncTraitsOf(job).updates_locally
             ? ReplacedMean::kExact
             : ReplacedMean::kAsGradients;
}

SyncTraits SyncTraitsOf(const v1::JobSpec& job) {
  const v1::SyncSpec& sync = job.strategy().parameter_server().sync();
  switch (sync.kind_case()) {
    case v1::SyncSpec::kSsp:
      return {.name = "ssp", .mode = ApplyMode::kSeparate};
    case v1::SyncSpec::kAsync:
      return {.name = "async", .mode = ApplyMode::kSeparate};
    case v1::SyncSpec::kLocalSgd:
      return {.name = "local_sgd",
              .updates_locally = true,
              .period = sync.local_sgd().period()};
    case v1::SyncSpec::kBsp:
    case v1::SyncSpec::KIND_NOT_SET:
      break;
  }
  return {.mode = sync.bsp().backup_workers() > 0 ? ApplyMode::kBackup
                                                  : ApplyMode::kBulk,
          .delay = sync.bsp().delay()};
}

StepCount StepCountOf(const v1::JobSpec& job) {
  const SyncTraits sync = SyncTraitsOf(job);
  StepCount count;
  count.steps_an_update = sync.period;
  if (sync.mode == ApplyMode::kSeparate) {
    count.updates_a_step = job.cluster().workers();
  }
  return count;
}

bool LeavesCheckpointAtEnd(const v1::JobSpec& job, int64_t start_step,
                           int64_t step) {
  const int64_t every = job.checkpoint().every_steps();
  const bool due = every > 0 && step % every == 0;
  return job.checkpoint().at_end() && !due && step > start_step &&
         step % StepCountOf(job).steps_an_update == 0;
}

}  // namespace tributary
