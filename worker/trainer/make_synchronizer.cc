// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/make_synchronizer.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/restore.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/member/report_checkpoint.h"
#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "kernels/device.h"
#include "spdlog/spdlog.h"
#include "worker/parallel/all_reduce_synchronizer.h"
#include "worker/session/server_synchronizer.h"

namespace tributary {
namespace {

using SynchronizerOr = absl::StatusOr<std::unique_ptr<GradientSynchronizer>>;
using RateOr = absl::StatusOr<std::function<double(int64_t step)>>;

RateOr LearningRateOf(const v1::JobSpec& job, int64_t total_steps) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      LearningRateSchedule schedule,
      LearningRateSchedule::Create(
          job.training().learning_rate_schedule(),
          OptimizerOptionsOf(job.training().optimizer()).learning_rate,
          total_steps));
  return [schedule = std::move(schedule)](int64_t step) {
    return schedule.At(step);
  };
}

// Memory for the gradients that are sent to servers or read by them: the
// model's or, when the model is on a device, that of copies on the host. Null:
// the kernel provides none.
std::shared_ptr<SharedArena> GradientMemory(const SynchronizerParts& parts) {
  Model& model = *parts.replica->model();
  if (parts.group.ops->is_host()) return model.gradient_memory();
  size_t bytes = 1;  // a stage may have no parameters
  for (const ParameterSpec& parameter : model.parameters()) {
    bytes += SharedArena::Taken(parameter.size() * sizeof(float));
  }
  auto memory = SharedArena::Create(bytes);
  return memory.ok() ? *std::move(memory) : nullptr;
}

SynchronizerOr MakeParameterServer(const SynchronizerParts& parts,
                                   const v1::Plan& plan) {
  Member& member = *parts.group.member;
  const v1::JobSpec& job = member.job();
  ServerSynchronizerParts server;
  server.member = &member;
  server.model = parts.replica->model();
  server.ops = parts.group.ops;
  server.gradient_memory = GradientMemory(parts);
  server.total_steps = parts.steps->total_steps();
  server.all_samples = [steps = parts.steps](int64_t step) {
    return static_cast<uint64_t>(steps->AllSamples(step));
  };
  TRIBUTARY_ASSIGN_OR_RETURN(server.learning_rate,
                             LearningRateOf(job, server.total_steps));
  TRIBUTARY_ASSIGN_OR_RETURN(server.groups,
                             ParameterGroupsOf(job, server.total_steps));
  server.recomputes = parts.recomputes;
  server.on_silent_shard = parts.on_silent_shard;
  server.delay_micros = parts.delay_micros;
  return MakeServerSynchronizer(server, plan);
}

// Returns where the ranks continue and what checkpoints they write.
absl::StatusOr<AllReduceOptions::Checkpoints> CheckpointsOf(
    Member& member, const v1::Plan& plan) {
  AllReduceOptions::Checkpoints checkpoints;
  checkpoints.start_step = plan.start_step();
  if (!plan.checkpoint_directory().empty()) {
    checkpoints.every_steps = member.job().checkpoint().every_steps();
    checkpoints.at_end = [&member, start = plan.start_step()](int64_t step) {
      return LeavesCheckpointAtEnd(member.job(), start, step);
    };
    checkpoints.directory = plan.checkpoint_directory();
    checkpoints.job_id = plan.job_id();
    checkpoints.lineage = plan.lineage();
    checkpoints.plan_epoch = plan.epoch();
    checkpoints.digests = !member.checkpoint_key().empty();
    checkpoints.on_written = [&member, epoch = plan.epoch()](
                                 const Checkpointer::Written& written,
                                 const std::vector<std::string>& state_names) {
      ReportCheckpoint(written, state_names, epoch, &member);
    };
  }
  if (plan.restore_from().empty()) return checkpoints;
  TRIBUTARY_ASSIGN_OR_RETURN(
      checkpoints.restore, OpenToRestore(plan, static_cast<int>(member.index()),
                                         static_cast<int>(plan.num_workers()),
                                         member.checkpoint_key()));
  spdlog::info("going on after step {} of {}", plan.start_step(),
               plan.restore_from());
  return checkpoints;
}

void SetExchange(const Strategy& strategy, AllReduceOptions* options) {
  using UpdateOn = AllReduceOptions::UpdateOn;
  options->update.on = strategy.one_process() ? UpdateOn::kRankZero
                       : strategy.exchange == Exchange::kShardedAllReduce
                           ? UpdateOn::kOwnCut
                           : UpdateOn::kEveryRank;
  options->bucket_bytes = static_cast<int64_t>(strategy.bucket_bytes);
  options->first_bucket_bytes =
      static_cast<int64_t>(strategy.first_bucket_bytes);
}

// Describes this rank's part of the model to the synchronizer.
absl::StatusOr<AllReduceOptions::Part> PartOf(const SynchronizerParts& parts,
                                              const v1::Plan& plan) {
  const Replica& replica = *parts.replica;
  AllReduceOptions::Part part;
  part.planned = FromProto(plan.parameters());
  part.mesh = replica.mesh();
  part.place = replica.place();
  TRIBUTARY_ASSIGN_OR_RETURN(
      part.place_in_plan,
      PlacesInPlan(replica.model()->parameters(), part.planned, replica.mesh(),
                   static_cast<int>(parts.group.member->index())));
  const v1::TrainingSpec& training = parts.group.member->job().training();
  const bool sums = training.clip_norm() > 0 ||
                    training.nonfinite() == v1::NON_FINITE_SKIP ||
                    NeedsWholeTensors(training.optimizer());
  if (replica.mesh().model_size() == 1 || !sums) return part;
  // The group exchanges only a few doubles, so host memory is fast enough.
  GroupParts on_host = parts.group;
  on_host.ops = HostOps();
  TRIBUTARY_ASSIGN_OR_RETURN(
      part.group,
      ConnectGroup(on_host, plan,
                   {.name = absl::StrCat("model/", replica.place().data),
                    .ranks = replica.ModelRanks(),
                    .backend = v1::COLLECTIVE_BACKEND_GLOO}));
  return part;
}

SynchronizerOr MakeAllReduce(const SynchronizerParts& parts,
                             const v1::Plan& plan) {
  Member& member = *parts.group.member;
  const v1::JobSpec& job = member.job();
  AllReduceOptions options;
  const Replica& replica = *parts.replica;
  const DeviceMesh::Place& place = replica.place();
  TRIBUTARY_ASSIGN_OR_RETURN(options.device, DeviceBeside(parts.group.ops));
  GroupParts beside = parts.group;
  beside.ops = options.device.ops;
  const v1::StrategySpec& strategy = job.strategy();
  TRIBUTARY_ASSIGN_OR_RETURN(
      options.group,
      ConnectGroup(
          beside, plan,
          {.name = absl::StrCat("data/", place.stage, "/", place.tensor),
           .ranks = replica.DataRanks(),
           .backend = strategy.has_data_parallel()
                          ? strategy.data_parallel().backend()
                          : strategy.all_reduce().backend()}));
  TRIBUTARY_ASSIGN_OR_RETURN(options.part, PartOf(parts, plan));
  options.model = parts.replica->model();
  SetExchange(StrategyOf(job), &options);
  options.update.optimizer = OptimizerOptionsOf(job.training().optimizer());
  options.update.clip_norm = job.training().clip_norm();
  options.update.skip_nonfinite =
      job.training().nonfinite() == v1::NON_FINITE_SKIP;
  TRIBUTARY_ASSIGN_OR_RETURN(options.update.learning_rate,
                             LearningRateOf(job, parts.steps->total_steps()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      options.update.groups,
      ParameterGroupsOf(job, parts.steps->total_steps()));
  options.samples = [steps = parts.steps,
                     size = options.group->size()](int64_t step) {
    std::vector<uint64_t> samples;
    for (int rank = 0; rank < size; ++rank) {
      samples.push_back(static_cast<uint64_t>(steps->RankSamples(step, rank)));
    }
    return samples;
  };
  TRIBUTARY_ASSIGN_OR_RETURN(options.checkpoints, CheckpointsOf(member, plan));
  options.on_waiting = [&member](const v1::Wait& wait) {
    member.SetWaitingFor(wait);
  };
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<AllReduceSynchronizer> made,
                             AllReduceSynchronizer::Create(std::move(options)));
  return made;
}

}  // namespace

SynchronizerOr MakeSynchronizer(const SynchronizerParts& parts,
                                const v1::Plan& plan) {
  return StrategyOf(parts.group.member->job()).uses_servers()
             ? MakeParameterServer(parts, plan)
             : MakeAllReduce(parts, plan);
}

}  // namespace tributary
