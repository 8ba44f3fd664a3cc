// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/core/job_state.h"
#include "coordinator/job/put_weights.h"
#include "coordinator/job/worker_reports.h"

namespace tributary {

// The end of a job: when its final weights can be saved, and which of them the
// ranks of a job without servers have not sent. A plain object: its owner
// locks.
class JobEnding {
 public:
  // Both must outlive this object.
  JobEnding(JobState* state, const WorkerReports* reports)
      : state_(*state), reports_(*reports) {}

  // A new plan is in force.
  void BeginPlan();
  // True once all workers have finished and have reported their last step.
  bool Ready() const;
  // Takes a piece of the weights from a rank. Errors as PutWeights::Put;
  // FailedPrecondition: another rank sends this parameter, or servers have it.
  absl::Status Put(const v1::PutWeightsRequest& request);
  // The ranks whose final weights are missing once all workers have finished.
  std::vector<uint32_t> Wanted() const;
  // The weights that the ranks have sent after this step. FailedPrecondition:
  // some are missing; the message names the ranks that are asked for them.
  absl::StatusOr<FinalWeights> Weights(int64_t step) const;
  // Asks for the missing weights again. Returns a sentence about it, once for
  // each plan; empty: there is none.
  std::string WantAgain(int64_t now_micros);
  // The final weights are saved, or cannot be; ends the job. An error is
  // ignored when the plan is no longer in force: then all members start over.
  void Saved(uint64_t plan_epoch, const absl::Status& status);

 private:
  JobState& state_;
  const WorkerReports& reports_;
  PutWeights put_weights_;
  uint64_t wanted_epoch_ = 0;  // the plan whose weights were asked for again
};

}  // namespace tributary
