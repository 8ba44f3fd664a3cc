// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "coordinator/core/members/membership.h"
#include "coordinator/core/stop_step.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// A checkpoint that somebody asks for while the job trains. It is of the
// highest step that any worker has begun, so all workers are held: first they
// begin no step until this one is settled, then none after it until all of
// them have finished it and every server has its snapshot. A rank that writes a
// file of its own writes it before its next step. A plain object.
class AskedCheckpoint {
 public:
  // StepCount::steps_an_update.
  explicit AskedCheckpoint(int64_t steps_a_round)
      : steps_a_round_(steps_a_round) {}

  // Holds the workers. Ignored while they are held.
  void Ask() {
    if (held_) return;
    ++number_;
    held_ = true;
    step_ = 0;
  }
  // Counts the holds, so that a late message about an earlier one is known; 0:
  // the workers are not held.
  uint64_t hold() const { return held_ ? number_ : 0; }
  // The newest settled step under this plan; 0: none.
  int64_t step() const { return step_; }
  bool unsettled() const { return held_ && step_ == 0; }

  // True when the step is settled now. A job that ends with this step, or with
  // local_sgd within its round, goes on without a checkpoint: nothing holds a
  // worker after the last step. So it does at the plan's start step, where the
  // only worker that had begun another one was lost: that checkpoint is there.
  bool Settle(absl::Span<const Place> workers, int64_t start_step,
              int64_t total_steps) {
    if (!unsettled()) return false;
    const std::optional<int64_t> highest =
        HighestPaused(workers, /*furthest=*/0, total_steps);
    if (!highest) return false;
    const int64_t end = RoundEnd(*highest, steps_a_round_);
    held_ = ends_with_job_ = false;
    if (end >= total_steps) {
      ends_with_job_ = true;
      return false;
    }
    held_ = end > start_step;
    step_ = held_ ? end : 0;
    return held_;
  }
  // The job ends before it could take the checkpoint.
  bool ends_with_job() const { return ends_with_job_; }
  void Release() { held_ = false; }
  // All members start over, or the job stops.
  void Drop() {
    held_ = ends_with_job_ = false;
    step_ = 0;
  }

  void Save(v1::CoordinatorState* state) const {
    state->set_holds(number_);
    state->set_held(held_);
    state->set_asked_step(step_);
  }
  void Restore(const v1::CoordinatorState& state) {
    number_ = state.holds();
    held_ = state.held();
    step_ = state.asked_step();
  }

 private:
  const int64_t steps_a_round_;
  uint64_t number_ = 0;
  bool held_ = false;
  bool ends_with_job_ = false;
  int64_t step_ = 0;
};

}  // namespace tributary
