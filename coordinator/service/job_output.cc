// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_output.h"

#include "common/base/failpoint.h"
#include "common/host/steady_waits.h"

namespace tributary {

void JobOutput::Saved(uint64_t plan_epoch, const absl::Status& status) {
  LockedJob::Change change(&job_);
  job_.core.ending().Saved(plan_epoch, status);
  (void)change.Commit();
  TRIBUTARY_FAILPOINT("coordinator-done");
}

bool JobOutput::HasWorkLocked() const {
  if (job_.closed) return true;
  // Until the state is saved, nothing can be done.
  return job_.core.Held().ok() &&
         (job_.core.ending().Ready() || job_.core.checkpoints().HasWork());
}

bool JobOutput::HasWork() const {
  absl::MutexLock lock(&job_.mu);
  return HasWorkLocked();
}

void JobOutput::AwaitWork(absl::Duration timeout) {
  absl::MutexLock lock(&job_.mu);
  const auto there = [this]() ABSL_SHARED_LOCKS_REQUIRED(job_.mu) {
    return HasWorkLocked();
  };
  AwaitFor(&job_.mu, absl::Condition(&there), timeout);
}

std::optional<PendingManifest> JobOutput::NextManifest() {
  absl::MutexLock lock(&job_.mu);
  if (!job_.core.Held().ok()) return std::nullopt;
  std::optional<PendingManifest> pending =
      job_.core.checkpoints().NextManifest();
  if (!pending) return pending;
  job_.core.evaluations().decisions().Save(
      pending->manifest.step(), pending->manifest.mutable_evaluations());
  if (job_.core.first_loss().step() > 0) {
    *pending->manifest.mutable_first_loss() = job_.core.first_loss();
  }
  pending->manifest.set_skipped_steps(
      job_.core.reports().progress().skipped_steps().CountUpTo(
          pending->manifest.step()));
  return pending;
}

bool JobOutput::ManifestWritten(const PendingManifest& pending,
                                const std::string& folder,
                                const absl::Status& status) {
  LockedJob::Change change(&job_);
  return job_.core.saver().deposed() ||
         job_.core.checkpoints().Written(pending, folder, status,
                                         job_.core.now());
}

std::vector<std::string> JobOutput::TakeFailedCheckpoints() {
  absl::MutexLock lock(&job_.mu);
  return job_.core.checkpoints().TakeFailed();
}

int64_t JobOutput::BestStep() const {
  absl::MutexLock lock(&job_.mu);
  return job_.core.evaluations().decisions().kept_step();
}

std::optional<UnreadableCheckpoint> JobOutput::TakeUnreadable() {
  absl::MutexLock lock(&job_.mu);
  return job_.core.checkpoints().TakeUnreadable();
}

void JobOutput::GoBack(const UnreadableCheckpoint& lost, int64_t step,
                       const std::string& folder) {
  LockedJob::Change change(&job_);
  job_.core.checkpoints().GoBack(lost, step, folder);
}

std::string JobOutput::CheckpointDirectoryAtEnd() const {
  absl::MutexLock lock(&job_.mu);
  const JobState& state = job_.core.state();
  if (!state.life().over() || state.plan() == nullptr ||
      job_.core.saver().deposed()) {
    return "";
  }
  return state.plan()->checkpoint_directory();
}

bool JobOutput::CheckpointOpen() const {
  absl::MutexLock lock(&job_.mu);
  return job_.core.checkpoints().Awaits(
      job_.core.reports().progress().merged_step(),
      job_.core.evaluations().decisions().kept_step());
}

bool JobOutput::ReadyToSave(v1::Plan* plan, int64_t* step) const {
  absl::MutexLock lock(&job_.mu);
  if (!job_.core.ending().Ready() || !job_.core.Held().ok()) return false;
  *plan = *job_.core.state().plan();
  *step = job_.core.state().steps().final_step();
  return true;
}

bool JobOutput::InForce(uint64_t plan_epoch) const {
  absl::MutexLock lock(&job_.mu);
  return job_.core.state().InForce(plan_epoch);
}

absl::StatusOr<FinalWeights> JobOutput::RankWeights(int64_t step) const {
  absl::MutexLock lock(&job_.mu);
  return job_.core.ending().Weights(step);
}

}  // namespace tributary
