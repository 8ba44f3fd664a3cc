// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/job/job_checkpoints.h"

namespace tributary {

// A wait of the whole job, and when it began by the clock. Converts to false if
// the job does not wait.
struct JobWait {
  v1::Wait wait;
  int64_t since_micros = 0;

  explicit operator bool() const { return !wait.text().empty(); }
};

// Answers people who ask a running job to stop or to take a checkpoint. Holds
// the workers for such a checkpoint and releases them when they are no longer
// needed for it. A plain object: its owner locks.
class OperatorRequests {
 public:
  // Both must outlive this object.
  OperatorRequests(JobState* state, const JobCheckpoints* checkpoints,
                   const Clock* clock)
      : state_(*state), checkpoints_(*checkpoints), clock_(clock) {}

  // Stops the job. FailedPrecondition: the job is over, or would not leave the
  // checkpoint that the request demands.
  absl::StatusOr<v1::StopJobResponse> Stop(const v1::StopJobRequest& request);

  // Asks for a checkpoint of at least `after` steps, unless one is in progress.
  // FailedPrecondition: the job writes no checkpoints, or is over.
  absl::Status AskCheckpoint(int64_t after);
  // Returns the newest checkpoint, if it has at least `after` steps.
  // DeadlineExceeded says what is missing; Aborted: the checkpoint has failed.
  absl::StatusOr<v1::TakeCheckpointResponse> AnswerCheckpoint(
      int64_t after) const;

  // Call it after every heartbeat.
  void Follow();
  // Whether the servers may take their snapshots of the asked checkpoint.
  bool Stands() const;
  JobWait Waiting() const;  // empty while the hold is short
  // Continues after an earlier coordinator, which may have held the workers.
  void Restore() { held_micros_ = clock_->NowMicros(); }
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

 private:
  // OK if a stop now would leave a checkpoint; otherwise says why not.
  absl::Status LeavesCheckpoint() const;
  absl::Status Over() const;  // the error of a call if the job is over
  void HoldIfDue();
  // Names the workers that the hold waits for: "waits for worker 1 to finish
  // step 6".
  std::string HeldFor() const;

  JobState& state_;
  const JobCheckpoints& checkpoints_;
  const Clock* const clock_;
  int64_t asked_after_ = 0;  // of AskCheckpoint; 0: nobody waits
  int64_t held_micros_ = 0;  // when the hold of the workers began
  std::vector<std::string> notices_;
};

}  // namespace tributary
