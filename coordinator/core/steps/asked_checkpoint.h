// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "coordinator/core/members/membership.h"
#include "coordinator/core/steps/stop_step.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// A checkpoint that somebody asks for while the job trains. Its step is the
// highest one that any worker has begun. To reach it, all workers are held:
// they begin no step until this step is settled, and no later step until all of
// them have finished it and every server has its snapshot. A rank that writes a
// file of its own writes it before its next step. A plain object.
class AskedCheckpoint {
 public:
  // steps_a_round: StepCount::steps_an_update.
  explicit AskedCheckpoint(int64_t steps_a_round)
      : steps_a_round_(steps_a_round) {}

  // Holds the workers. Ignored while they are held.
  void Ask() {
    if (held_) return;
    ++number_;
    held_ = true;
    step_ = 0;
  }
  // The number of the current hold, which identifies late messages about an
  // earlier hold; 0: the workers are not held.
  uint64_t hold() const { return held_ ? number_ : 0; }
  // The newest settled step under this plan; 0: no step is settled.
  int64_t step() const { return step_; }
  bool unsettled() const { return held_ && step_ == 0; }

  // Returns true when this call has settled the step. A job goes on without a
  // checkpoint in two cases. The job ends with this step (with local_sgd:
  // within its round): nothing holds a worker after the last step. Or the only
  // worker that had begun a step was lost, and this is the plan's start step,
  // which has a checkpoint.
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
  // True when the job ends before it could take the checkpoint.
  bool ends_with_job() const { return ends_with_job_; }
  void Release() { held_ = false; }
  // Forgets the checkpoint, because all members start over or the job stops.
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
