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

// The end of a job: when its final weights can be saved, and, without servers,
// which weights the ranks have not sent yet. A plain object: its owner locks.
class JobEnding {
 public:
  // Both must outlive this object.
  JobEnding(JobState* state, const WorkerReports* reports)
      : state_(*state), reports_(*reports) {}

  // A new plan is in force.
  void BeginPlan();
  // True once all workers have finished and have reported their last step.
  bool Ready() const;
  // Takes a piece of the weights from a rank. FailedPrecondition: another rank
  // sends this parameter, or servers have it. Other errors as PutWeights::Put.
  absl::Status Put(const v1::PutWeightsRequest& request);
  // The ranks whose final weights are missing once all workers have finished.
  std::vector<uint32_t> Wanted() const;
  // The weights that the ranks have sent after this step. FailedPrecondition:
  // some are missing; the message names the ranks that are asked for them.
  absl::StatusOr<FinalWeights> Weights(int64_t step) const;
  // Asks for the missing weights again. Returns a sentence about it, once for
  // each plan; otherwise empty.
  std::string WantAgain(int64_t now_micros);
  // Ends the job: the final weights are saved or, with an error, cannot be. An
  // error is ignored if the plan is no longer in force, because all members
  // start over.
  void Saved(uint64_t plan_epoch, const absl::Status& status);

 private:
  JobState& state_;
  const WorkerReports& reports_;
  PutWeights put_weights_;
  uint64_t wanted_epoch_ = 0;  // the plan whose weights were asked for again
};

}  // namespace tributary
