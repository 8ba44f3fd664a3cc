// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/server_synchronizer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/restore.h"
#include "common/job/job_options.h"
#include "common/member/report_checkpoint.h"
#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"
#include "worker/rank/parallel/delayed_synchronizer.h"
#include "worker/rank/parallel/local_sgd_synchronizer.h"
#include "worker/rank/parallel/parameter_server_synchronizer.h"
#include "worker/rank/parallel/residual_checkpoints.h"

namespace tributary {
namespace {

// The samples of all ranks in a push of a ParameterClient, for a step or a
// round of local_sgd. Null if pushes do not wait for every rank.
std::function<uint64_t(int64_t)> TotalSamples(
    const ServerSynchronizerParts& parts, const SyncTraits& sync) {
  if (!parts.all_samples || sync.mode != ApplyMode::kBulk) return nullptr;
  return [all = parts.all_samples, total = parts.total_steps,
          period = sync.period](int64_t push) {
    const int64_t first = push * period;
    const int64_t end = std::min(first + period, total);
    uint64_t samples = 0;
    for (int64_t step = first; step < end; ++step) samples += all(step);
    return samples;
  };
}

// Opens the residual with which this rank begins, and its checkpoints. Returns
// null when checkpoints hold no residuals.
absl::StatusOr<std::unique_ptr<ResidualCheckpoints>> ResidualsOf(
    const ServerSynchronizerParts& parts, const v1::Plan& plan) {
  Member& member = *parts.member;
  if (!StrategyOf(member.job()).checkpoints_residuals()) return nullptr;
  const int rank = static_cast<int>(member.index());
  ResidualCheckpoints::Options options;
  options.start_step = plan.start_step();
  if (!plan.checkpoint_directory().empty()) {
    options.every_steps = member.job().checkpoint().every_steps();
    options.at_end = [&member, start = plan.start_step()](int64_t step) {
      return LeavesCheckpointAtEnd(member.job(), start, step);
    };
    options.directory = plan.checkpoint_directory();
    options.on_written =
        [&member, epoch = plan.epoch()](const Checkpointer::Written& written) {
          ReportCheckpoint(written, /*state_names=*/{}, epoch, &member);
        };
  }
  options.series = ResidualSeriesOf(plan, rank);
  options.series.digests = !member.checkpoint_key().empty();
  if (parts.for_tests.disk) {
    parts.for_tests.disk(plan, &options);
  } else if (!plan.restore_from().empty()) {
    std::string why;
    TRIBUTARY_ASSIGN_OR_RETURN(
        const std::shared_ptr<const ResidualFile> file,
        OpenResidualToRestore(plan, rank, &why, member.checkpoint_key()));
    if (file != nullptr) {
      options.restore = [file](absl::Span<float* const> residuals) {
        return file->Read(residuals);
      };
    } else {
      spdlog::warn("the residual begins with zeros: {}", why);
    }
  }
  return std::make_unique<ResidualCheckpoints>(std::move(options));
}

absl::StatusOr<std::unique_ptr<ParameterClient>> ConnectClient(
    const ServerSynchronizerParts& parts, const v1::Plan& plan) {
  Member& member = *parts.member;
  const Strategy strategy = StrategyOf(member.job());
  return ParameterClient::Connect(
      {.plan = plan,
       .rank = member.index(),
       .incarnation = member.incarnation(),
       .proof = member.proof(),
       .recomputes = parts.recomputes,
       .step_timeout = absl::Seconds(strategy.timeout_seconds),
       .transport = strategy.transport,
       .gradient_memory = parts.gradient_memory,
       .on_waiting =
           [&member, silent = parts.on_silent_shard](const v1::Wait& wait) {
             if (silent) {
               silent(wait.has_server() ? static_cast<int>(wait.server()) : -1);
             }
             member.display().SetWaitingFor(wait);
           },
       .total_samples = TotalSamples(parts, SyncTraitsOf(member.job())),
       .for_tests = parts.for_tests.client,
       .trace = member.trace()});
}

// Updates the weights by steps of this rank and exchanges their movement.
absl::StatusOr<std::unique_ptr<GradientSynchronizer>> MakeLocalSgd(
    const ServerSynchronizerParts& parts, const v1::Plan& plan) {
  const v1::JobSpec& job = parts.member->job();
  LocalSgdSynchronizer::Options options;
  TRIBUTARY_ASSIGN_OR_RETURN(options.client, ConnectClient(parts, plan));
  options.model = parts.model;
  options.ops = parts.ops;
  options.period = SyncTraitsOf(job).period;
  options.total_steps = parts.total_steps;
  options.inner = OptimizerOptionsOf(job.training().optimizer());
  options.learning_rate = parts.learning_rate;
  options.groups = parts.groups;
  return LocalSgdSynchronizer::Create(std::move(options));
}

// Exchanges the gradient of every step.
absl::StatusOr<std::unique_ptr<ParameterServerSynchronizer>> MakeExchange(
    const ServerSynchronizerParts& parts, const v1::Plan& plan) {
  Member& member = *parts.member;
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<ParameterClient> client,
                             ConnectClient(parts, plan));
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::vector<int> places,
      PlacesInPlan(parts.model->parameters(), client->partition().parameters(),
                   MeshOf(plan), static_cast<int>(member.index())));
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<ResidualCheckpoints> residuals,
                             ResidualsOf(parts, plan));
  TRIBUTARY_ASSIGN_OR_RETURN(ExchangeDevice device, DeviceBeside(parts.ops));
  TRIBUTARY_ASSIGN_OR_RETURN(ExchangeDevice second, DeviceBeside(parts.ops));
  return ParameterServerSynchronizer::Create(
      {.client = std::move(client),
       .model = parts.model,
       .device = std::move(device),
       .weights_ops = std::move(second.beside),
       .mode = SyncTraitsOf(member.job()).mode,
       .place_in_plan = std::move(places),
       .gradient_memory = parts.gradient_memory,
       .residuals = std::move(residuals)});
}

// Exchanges the gradient of a step during the next one, from second arrays.
absl::StatusOr<std::unique_ptr<GradientSynchronizer>> MakeDelayed(
    ServerSynchronizerParts parts, const v1::Plan& plan) {
  DelayedSynchronizer::Options options;
  TRIBUTARY_ASSIGN_OR_RETURN(options.memory,
                             ExchangeMemory::Create(parts.model, parts.ops));
  options.ops = parts.ops;
  parts.model = options.memory.get();
  if (parts.ops->is_host()) {
    parts.gradient_memory = options.memory->gradient_memory();
  }
  TRIBUTARY_ASSIGN_OR_RETURN(options.exchange, MakeExchange(parts, plan));
  return std::make_unique<DelayedSynchronizer>(std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GradientSynchronizer>> MakeServerSynchronizer(
    const ServerSynchronizerParts& parts, const v1::Plan& plan) {
  const SyncTraits sync = SyncTraitsOf(parts.member->job());
  if (sync.updates_locally) return MakeLocalSgd(parts, plan);
  if (sync.delay > 0) return MakeDelayed(parts, plan);
  return MakeExchange(parts, plan);
}

}  // namespace tributary
