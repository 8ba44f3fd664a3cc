// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/service/locked_job.h"

namespace tributary {

// Gives the writing thread the manifests of checkpoints and the final weights.
// Every function may be called from any thread; only AwaitWork waits.
class JobOutput {
 public:
  // `job` must outlive this object.
  explicit JobOutput(LockedJob* job) : job_(*job) {}

  // Waits up to `timeout` for a manifest to write, for a checkpoint that cannot
  // be read, for all workers to have finished, or for Close. While the state
  // cannot be saved, only for Close.
  void AwaitWork(absl::Duration timeout);
  // Whether AwaitWork would return at once.
  bool HasWork() const;
  // NextManifest returns the next manifest to write, if any; ManifestWritten
  // takes the result of writing it. ManifestWritten returns false if a new plan
  // has replaced the manifest's plan, so its steps no longer count.
  std::optional<PendingManifest> NextManifest();
  bool ManifestWritten(const PendingManifest& pending,
                       const std::string& folder, const absl::Status& status);
  // TakeUnreadable returns the checkpoint that a member of the newest plan
  // cannot read, if any. GoBack takes the older checkpoint to use instead; no
  // folder: the job's beginning.
  std::optional<UnreadableCheckpoint> TakeUnreadable();
  void GoBack(const UnreadableCheckpoint& lost, int64_t step,
              const std::string& folder);
  // Takes the directories of checkpoints that have failed since the last call.
  std::vector<std::string> TakeFailedCheckpoints();
  // The step of the best evaluation, whose checkpoint the job keeps; 0: none.
  int64_t BestStep() const;
  // The checkpoint directory of a job that is over; empty: the job is not over,
  // or writes no checkpoints.
  std::string CheckpointDirectoryAtEnd() const;
  // Whether a checkpoint of a finished step may still become complete.
  bool CheckpointOpen() const;
  // True once all workers have finished and the weights can be saved. Sets the
  // plan and the step after which it ended.
  bool ReadyToSave(v1::Plan* plan, int64_t* step) const;
  // Whether this plan is the newest and has not ended.
  bool InForce(uint64_t plan_epoch) const;
  // See JobEnding::Weights.
  absl::StatusOr<FinalWeights> RankWeights(int64_t step) const;
  // Ends the job. An error is ignored when the plan is no longer in force: then
  // a server was lost, and all members start over.
  void Saved(uint64_t plan_epoch, const absl::Status& status);

 private:
  bool HasWorkLocked() const ABSL_SHARED_LOCKS_REQUIRED(job_.mu);

  LockedJob& job_;
};

}  // namespace tributary
