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
// Answers to wait for: the first may answer a heartbeat sent before the error.
constexpr int64_t kNewsAnswers = 2;

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

absl::Status Member::WaitForNews(uint64_t epoch, absl::Duration patience) {
  const int64_t micros = absl::ToInt64Microseconds(patience);
  int64_t quiet_since = options_.clock->NowMicros();
  int64_t quiet_answers = -1;
  while (true) {
    const absl::Status news =
        WaitForPlanAfter(epoch, absl::Milliseconds(place_.heartbeat_ms()));
    if (!absl::IsDeadlineExceeded(news)) return news;
    const int64_t now = options_.clock->NowMicros();
    absl::MutexLock lock(&mu_);
    if (quiet_answers < 0 || !state_.waits_for().empty()) {
      quiet_since = now;
      quiet_answers = state_.answers();
    } else if (state_.answers() - quiet_answers >= kNewsAnswers &&
               now - quiet_since >= micros) {
      return news;
    }
  }
}

}  // namespace tributary
