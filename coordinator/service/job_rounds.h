// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "coordinator/job/final_weights.h"
#include "coordinator/job/job_checkpoints.h"
#include "coordinator/service/job_control.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// The files of a job's checkpoints and its final weights, as JobRounds uses
// them.
class JobFiles {
 public:
  struct OlderCheckpoint {
    int64_t step = 0;
    std::string folder;  // empty: the job's beginning
  };

  virtual ~JobFiles() = default;
  // Deletes what is left of a checkpoint that has failed.
  virtual void RemoveFailed(const std::string& folder) = 0;
  virtual absl::Status WriteManifest(const PendingManifest& pending) = 0;
  // Removes a manifest whose plan is over: its checkpoint no longer exists.
  virtual void RevokeManifest(const PendingManifest& pending) = 0;
  // Call it when the checkpoint is whole. saved: the job's state names it, so
  // older checkpoints may be deleted.
  virtual void ManifestWritten(const PendingManifest& pending, bool saved) = 0;
  // Returns the newest whole checkpoint before the lost one. Removes later
  // ones, whose steps are computed again. An error fails the job.
  virtual absl::StatusOr<OlderCheckpoint> GoBackBefore(
      const UnreadableCheckpoint& lost) = 0;
  // Returns the weights after `step` steps of the plan. cancelled: polled
  // between calls.
  virtual absl::StatusOr<FinalWeights> ReadWeights(
      const v1::Plan& plan, int64_t step,
      const std::function<bool()>& cancelled) = 0;
  // ResourceExhausted: the disk is full.
  virtual absl::Status SaveWeights(const FinalWeights& weights) = 0;
  // The job is over: removes checkpoints that are incomplete now, because they
  // will never be complete. `directory`: as
  // JobOutput::CheckpointDirectoryAtEnd.
  virtual void LeaveWholeCheckpoints(const std::string& directory) = 0;
};

// The thread of a coordinator that writes manifests and final weights.
class JobRounds {
 public:
  struct Options {
    const Clock* clock = nullptr;
    // How long the end of a job waits for room on a full disk, and for ranks to
    // send the weights that they have.
    absl::Duration loss_timeout;
    // True if the ranks, not servers, have the weights and are asked for them.
    bool ranks_have_weights = false;
  };

  // `control` and `files` must outlive this object.
  JobRounds(const Options& options, JobControl* control, JobFiles* files)
      : options_(options), control_(*control), files_(*files) {}

  // Runs until the control is closed.
  void Run();

 private:
  // A plan that all workers have finished.
  struct Ending {
    uint64_t plan_epoch = 0;
    int64_t since_micros = 0;
  };

  void WriteManifests();
  void TakeOlderCheckpoint(const UnreadableCheckpoint& lost);
  void SaveWeights(const v1::Plan& plan, int64_t step);
  absl::Status HandOver(const FinalWeights& weights, uint64_t plan_epoch);

  const Options options_;
  JobControl& control_;
  JobFiles& files_;
  Ending ending_;
};

}  // namespace tributary
