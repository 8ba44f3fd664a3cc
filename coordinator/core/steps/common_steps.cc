// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/steps/common_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tributary {

CommonSteps::CommonSteps(JobParts* job)
    : job_(*job),
      stop_(StepCountOf(job_.options.job).steps_an_update),
      asked_(StepCountOf(job_.options.job).steps_an_update) {}

void CommonSteps::Save(v1::CoordinatorState* state) const {
  stop_.Save(state);
  asked_.Save(state);
}

void CommonSteps::Restore(const v1::CoordinatorState& state) {
  stop_.Restore(state);
  asked_.Restore(state);
}

void CommonSteps::RequestStop() {
  if (stop_.requested() || job_.life.over()) return;
  stop_.Request();
  if (job_.plan.get() == nullptr) {
    return job_.life.Fail(
        absl::StrCat("stopped before the first step, while waiting for ",
                     job_.membership.Missing(job_.plan.declared())),
        v1::CAUSE_STOP);
  }
  BeginToStop();
  SettleStopStep();
}

void CommonSteps::StopEarly(int64_t step, std::string why) {
  if (job_.life.over() || !stop_.StopEarly(step, job_.plan.total_steps())) {
    return;
  }
  BeginToStop();
  job_.notices.push_back(std::move(why));
}

void CommonSteps::AskCheckpoint() {
  if (job_.life.over() || job_.plan.get() == nullptr || job_.plan.wants_new() ||
      stop_.requested() || asked_.hold() > 0) {
    return;
  }
  job_.membership.ForgetPauses();
  asked_.Ask();
}

void CommonSteps::ReleaseWorkers() {
  if (asked_.hold() > 0 && asked_.step() > 0) asked_.Release();
}

void CommonSteps::Hear(const v1::HeartbeatRequest& worker, int64_t begun_step) {
  if (worker.program_ended() && !job_.life.over()) {
    stop_.RequestForProgram();
    BeginToStop();
  }
  if (worker.held() != 0 && worker.held() == asked_.hold() &&
      asked_.unsettled()) {
    job_.membership.SetPaused(worker.index(), begun_step);
  }
  if ((worker.paused() || worker.program_ended()) &&
      job_.life.phase() == v1::JOB_PHASE_STOPPING) {
    job_.membership.SetPaused(worker.index(), begun_step);
  }
  SettleStopStep();
  SettleAskedCheckpoint();
}

void CommonSteps::StartOver() {
  stop_.Reset();
  asked_.Drop();
}

// A checkpoint whose step is not settled is left to the stop.
void CommonSteps::BeginToStop() {
  job_.life.BeginToStop();
  if (asked_.unsettled()) asked_.Drop();
}

void CommonSteps::SettleStopStep() {
  if (job_.life.over()) return;
  stop_.Settle(job_.membership.workers(), job_.plan.total_steps());
}

// Workers that paused under a hold are no longer paused after it.
void CommonSteps::SettleAskedCheckpoint() {
  if (!job_.life.over() && !stop_.requested() &&
      asked_.Settle(job_.membership.workers(), job_.plan.get()->start_step(),
                    job_.plan.total_steps())) {
    job_.membership.ForgetPauses();
  }
}

}  // namespace tributary
