// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "coordinator/core/members/membership.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// The highest step that has been begun by one of these workers or by an earlier
// process (`furthest`). A worker that has finished or paused begins no step
// after the one it reported, so every worker can still reach the result.
// Nullopt: some worker may still begin another step.
inline std::optional<int64_t> HighestPaused(absl::Span<const Place> workers,
                                            int64_t furthest,
                                            int64_t total_steps) {
  int64_t highest = furthest;
  for (const Place& worker : workers) {
    if (worker.stop_bound < 0 && !worker.finished) return std::nullopt;
    highest =
        std::max(highest, worker.finished ? total_steps : worker.stop_bound);
  }
  return highest;
}

// The end of this step's round of local_sgd.
inline int64_t RoundEnd(int64_t step, int64_t steps_a_round) {
  return (step + steps_a_round - 1) / steps_a_round * steps_a_round;
}

// Determines the step after which all workers of a job stop, on request or
// because a rank's program takes no further step. This is the highest step that
// any of them has begun. A job that stops early by its evaluations, after which
// all workers wait, stops at the evaluated step itself. With local_sgd the job
// stops at the end of that step's round, because servers have no weights of a
// step within a round. A plain object.
class StopStep {
 public:
  // steps_a_round: StepCount::steps_an_update.
  explicit StopStep(int64_t steps_a_round) : steps_a_round_(steps_a_round) {}

  void Request() { requested_ = true; }
  void RequestForProgram() {
    if (!requested_) program_ended_ = true;
    requested_ = true;
  }
  // Returns false if the job stops already.
  bool StopEarly(int64_t step, int64_t total_steps) {
    if (requested_) return false;
    requested_ = stopped_early_ = true;
    SetStep(step, total_steps);
    return true;
  }
  bool requested() const { return requested_; }
  // Whether a person has requested the stop, not the end of a program or an
  // evaluation.
  bool by_person() const {
    return requested_ && !program_ended_ && !stopped_early_;
  }
  bool stopped_early() const { return stopped_early_; }
  // The step to stop after. Nullopt: no stop is requested, or some worker may
  // still begin another step.
  std::optional<int64_t> get() const { return step_; }

  // This step has been begun, so the job must not stop before it.
  void KnowBegun(int64_t step) { furthest_ = std::max(furthest_, step); }
  // The highest step that is known to have been begun.
  int64_t furthest() const { return furthest_; }

  // After a rollback workers may report earlier steps than furthest(); those
  // steps are computed again first.
  void Settle(absl::Span<const Place> workers, int64_t total_steps) {
    if (!requested_ || step_) return;
    const auto highest = HighestPaused(workers, furthest_, total_steps);
    if (highest) SetStep(*highest, total_steps);
  }
  // All members start over, so the step has to be settled again. The step of an
  // early stop stays, because the same evaluations lead to it.
  void Reset() {
    if (!stopped_early_) step_.reset();
  }

  void Save(v1::CoordinatorState* state) const {
    state->set_stop_requested(requested_);
    state->set_program_ended(program_ended_);
    state->set_stopped_early(stopped_early_);
    state->set_furthest_step(furthest_);
    if (step_) state->set_stop_step(*step_);
  }
  void Restore(const v1::CoordinatorState& state) {
    requested_ = state.stop_requested();
    program_ended_ = state.program_ended();
    stopped_early_ = state.stopped_early();
    furthest_ = state.furthest_step();
    if (state.has_stop_step()) step_ = state.stop_step();
  }

 private:
  void SetStep(int64_t step, int64_t total_steps) {
    step_ = std::min(RoundEnd(step, steps_a_round_), total_steps);
  }

  const int64_t steps_a_round_;
  bool requested_ = false;
  bool program_ended_ = false;
  bool stopped_early_ = false;
  std::optional<int64_t> step_;
  int64_t furthest_ = 0;  // begun before a rollback, or by a lost member
};

}  // namespace tributary
