// How a member waits for other members: as long as its coordinator answers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/member/member.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// Duration of one call for a plan. After it the wait is logged and the call
// repeated.
constexpr absl::Duration kPlanChunk = absl::Seconds(30);

}  // namespace

absl::StatusOr<v1::Plan> Member::GetPlan(uint64_t min_epoch,
                                         absl::Duration timeout) {
  SetWaitingFor(absl::StrCat("a plan of epoch ", min_epoch, " or later"));
  const int64_t start = options_.clock->NowMicros();
  absl::Status end;
  absl::StatusOr<v1::Plan> plan;
  for (absl::Duration left = timeout;;) {
    plan = client_->GetPlan(min_epoch, std::min(left, kPlanChunk));
    left = timeout - absl::Microseconds(options_.clock->NowMicros() - start);
    if (plan.ok() || !MayPass(plan.status()) || left <= absl::ZeroDuration()) {
      break;
    }
    if (end = this->end(); !end.ok()) break;
    if (phase() == v1::JOB_PHASE_DONE) {
      end = absl::FailedPreconditionError("the job is done");
      break;
    }
    spdlog::info("still waits: {}", std::string(plan.status().message()));
  }
  absl::MutexLock lock(&mu_);
  waiting_for_.clear();
  if (!end.ok()) return end;
  if (plan.ok()) {
    state_.OnPlan(plan->epoch(), plan->start_step());
  }
  return plan;
}

void Member::Follow(const Decide& decide) {
  absl::MutexLock lock(&mu_);
  FollowLocked(decide);
}

void Member::FollowLocked(const Decide& decide) {
  // No deadline of its own, because the heartbeats have one.
  while (!decide(state_, options_.clock->NowMicros())) {
    const auto heard = [this, answers = state_.answers()]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                             return state_.answers() != answers ||
                                    !state_.end().ok();
                           };
    mu_.Await(absl::Condition(&heard));
  }
}

}  // namespace tributary
