// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// The phases of one job:
//
//   WAITING -> RUNNING -> (STOPPING ->) DONE
//      any of these ------------------> FAILED
//
// A plain object.
class JobLife {
 public:
  v1::JobPhase phase() const { return phase_; }
  const std::string& message() const { return message_; }
  v1::Cause cause() const { return cause_; }  // of the failure
  bool over() const {
    return phase_ == v1::JOB_PHASE_DONE || phase_ == v1::JOB_PHASE_FAILED;
  }

  // Call it when the first plan is published.
  void Run() {
    if (phase_ == v1::JOB_PHASE_WAITING) phase_ = v1::JOB_PHASE_RUNNING;
  }
  void BeginToStop() { phase_ = v1::JOB_PHASE_STOPPING; }
  void MarkDone() {  // only from RUNNING or STOPPING
    if (!over()) phase_ = v1::JOB_PHASE_DONE;
  }
  // Ends the job as failed. After several calls, the first reason stays.
  void Fail(absl::string_view why, v1::Cause cause = v1::CAUSE_UNSPECIFIED) {
    if (over()) return;
    phase_ = v1::JOB_PHASE_FAILED;
    message_ = std::string(why);
    cause_ = cause;
  }

  // Like Fail, before the first step has ended: the job cannot begin as it is
  // described.
  void Refuse(absl::string_view why, v1::Cause cause) {
    refused_ = !over();
    Fail(why, cause);
  }
  bool refused() const { return refused_; }

  void Save(v1::CoordinatorState* state) const {
    state->set_phase(phase_);
    state->set_message(message_);
    state->set_cause(cause_);
  }
  void Restore(const v1::CoordinatorState& state) {
    phase_ = state.phase();
    message_ = state.message();
    cause_ = state.cause();
  }

 private:
  v1::JobPhase phase_ = v1::JOB_PHASE_WAITING;
  std::string message_;
  v1::Cause cause_ = v1::CAUSE_UNSPECIFIED;
  bool refused_ = false;
};

}  // namespace tributary
