// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/core/job_parts.h"
#include "coordinator/core/steps/asked_checkpoint.h"
#include "coordinator/core/steps/stop_step.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The steps at which all workers of a job meet: the one after which it stops,
// and that of a checkpoint which somebody asks for. Both take two phases: every
// worker pauses and reports the last step that it has begun, and the highest of
// these steps is the common one. A plain object.
class CommonSteps {
 public:
  // `job` must outlive this object.
  explicit CommonSteps(JobParts* job);

  void Save(v1::CoordinatorState* state) const;
  void Restore(const v1::CoordinatorState& state);

  // Stops the job. Before the first plan it has no step to stop at and fails.
  void RequestStop();
  // Stops after this step, where all workers wait. Ignored if it stops already.
  void StopEarly(int64_t step, std::string why);
  // Takes a checkpoint of the next common step. Ignored before the first plan,
  // and when the job stops or is over.
  void AskCheckpoint();
  // Lets the workers go on once all of them have finished the asked
  // checkpoint's step and the servers have their snapshots.
  void ReleaseWorkers();

  // A worker has begun this step, perhaps under an earlier plan or coordinator:
  // the job stops there or later.
  void KnowBegun(int64_t step) { stop_.KnowBegun(step); }
  // Takes what a worker of the plan in force says about its pause.
  // `begun_step`: the last step that it has begun.
  void Hear(const v1::HeartbeatRequest& worker, int64_t begun_step);
  // All members start over: the steps have to be settled again.
  void StartOver();

  const StopStep& stop() const { return stop_; }
  const AskedCheckpoint& asked() const { return asked_; }
  // The last step of the job, as far as it is known.
  int64_t final_step() const {
    return stop_.get().value_or(job_.plan.total_steps());
  }

 private:
  void BeginToStop();
  void SettleStopStep();
  void SettleAskedCheckpoint();

  JobParts& job_;
  StopStep stop_;
  AskedCheckpoint asked_;
};

}  // namespace tributary
