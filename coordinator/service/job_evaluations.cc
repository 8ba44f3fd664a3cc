// SPDX-License-Identifier: Apache-2.0
// What a job does with the evaluations of its ranks.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/service/job_core.h"

namespace tributary {

absl::Status JobCore::ReportEvaluation(
    const v1::ReportEvaluationRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(state_.Renew(v1::ROLE_WORKER, request.rank(),
                                         request.incarnation(), now()));
  // A sender with an earlier term may have parts that only the previous
  // coordinator had. Until it has sent them again, a later evaluation must not
  // be complete.
  if (request.term() < saver_.term() && saver_.term() > 1) {
    return absl::AbortedError(
        absl::StrCat("the evaluation names term ", request.term(),
                     ", this coordinator has term ", saver_.term(),
                     "; send it again with term ", saver_.term()));
  }
  if (request.test()) {
    TRIBUTARY_RETURN_IF_ERROR(reports_.AddTest(request));
    Decide();
    return absl::OkStatus();
  }
  TRIBUTARY_RETURN_IF_ERROR(reports_.evaluations().Add(request));
  Decide();
  if (IsEvaluated(request.step())) decisions_.Stand(request.step(), now());
  return absl::OkStatus();
}

v1::ReportEvaluationResponse JobCore::AnswerReport(
    const v1::ReportEvaluationRequest& request) const {
  v1::ReportEvaluationResponse response;
  const std::optional<int64_t> step = evaluation_saver_.SavedStep(
      request.test() ? "test" : EvaluatedSet(state_.options().job));
  if (step) response.set_saved_step(*step);
  return response;
}

std::optional<PendingManifest> JobCore::NextManifest() {
  std::optional<PendingManifest> pending = checkpoints_.NextManifest();
  if (!pending) return pending;
  decisions_.Save(pending->manifest.step(),
                  pending->manifest.mutable_evaluations());
  return pending;
}

void JobCore::Decide() {
  for (EvaluationRecord& evaluation : reports_.TakeComplete()) {
    if (evaluation.set == EvaluatedSet(state_.options().job)) {
      decisions_.Add(evaluation);
    }
    evaluation_saver_.Add(std::move(evaluation));
  }
}

bool JobCore::IsEvaluated(int64_t step) const {
  return reports_.evaluations().latest().step >= step;
}

absl::Status JobCore::StandAt(const v1::AwaitEvaluationRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(state_.CheckWorker(
      request.rank(), request.incarnation(), request.plan_epoch()));
  if (IsEvaluated(request.step())) decisions_.Stand(request.step(), now());
  return absl::OkStatus();
}

absl::StatusOr<v1::AwaitEvaluationResponse> JobCore::AnswerEvaluation(
    int64_t step) const {
  return decisions_.Answer(step, IsEvaluated(step), now());
}

}  // namespace tributary
