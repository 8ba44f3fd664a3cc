// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/group_synchronizer.h"

#include <utility>

#include "common/checkpoint/restore.h"
#include "common/job/job_options.h"
#include "common/member/report_checkpoint.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"
#include "worker/rank/parallel/all_reduce_synchronizer.h"

namespace tributary {
namespace {

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

}  // namespace

absl::StatusOr<std::unique_ptr<GradientSynchronizer>> MakeGroupSynchronizer(
    GroupSynchronizerParts parts, const v1::Plan& plan) {
  Member& member = *parts.group.member;
  const v1::JobSpec& job = member.job();
  const v1::StrategySpec& strategy = job.strategy();
  AllReduceOptions options;
  TRIBUTARY_ASSIGN_OR_RETURN(options.device, DeviceBeside(parts.group.ops));
  GroupParts beside = parts.group;
  beside.ops = options.device.ops;
  TRIBUTARY_ASSIGN_OR_RETURN(
      options.group,
      ConnectGroup(beside, plan,
                   {.name = parts.name,
                    .ranks = std::move(parts.ranks),
                    .backend = strategy.has_data_parallel()
                                   ? strategy.data_parallel().backend()
                                   : strategy.all_reduce().backend()}));
  options.part = std::move(parts.part);
  options.model = parts.model;
  SetExchange(StrategyOf(job), &options);
  options.update = {
      .on = options.update.on,
      .optimizer = OptimizerOptionsOf(job.training().optimizer()),
      .learning_rate = std::move(parts.learning_rate),
      .groups = std::move(parts.groups),
      .clip_norm = job.training().clip_norm(),
      .skip_nonfinite = job.training().nonfinite() == v1::NON_FINITE_SKIP};
  options.replaced_mean = ReplacedMeanOf(job);
  options.samples = std::move(parts.samples);
  TRIBUTARY_ASSIGN_OR_RETURN(options.checkpoints, CheckpointsOf(member, plan));
  options.on_waiting = [&member](const v1::Wait& wait) {
    member.display().SetWaitingFor(wait);
  };
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<AllReduceSynchronizer> made,
                             AllReduceSynchronizer::Create(std::move(options)));
  return made;
}

}  // namespace tributary
