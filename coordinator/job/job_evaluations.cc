// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/job_evaluations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"

namespace tributary {

JobEvaluations::JobEvaluations(JobState* state, WorkerReports* reports,
                               EvaluationSaver::Save save, const Clock* clock)
    : state_(*state),
      reports_(*reports),
      clock_(clock),
      decisions_(state),
      saver_(std::move(save), clock) {}

std::string JobEvaluations::Set() const {
  return EvaluatedSet(state_.options().job);
}

// Evaluations on another set say nothing about this one.
void JobEvaluations::Begin() {
  const auto& manifest = state_.options().start.manifest;
  if (!manifest || EvaluatedSet(manifest->job()) != Set()) return;
  for (const EvaluationRecord& evaluation :
       EvaluationsOf(manifest->evaluations(), Set())) {
    reports_.evaluations().GoOnAfter(evaluation);
  }
  decisions_.Restore({}, manifest->evaluations());
}

// Where timing decides, the steps after the restore point end with other
// weights now.
void JobEvaluations::GoBack() {
  if (SyncTraitsOf(state_.options().job).mode == ApplyMode::kSeparate) {
    decisions_.GoBack(state_.plan()->start_step());
  }
}

void JobEvaluations::Restore(const std::vector<EvaluationRecord>& evaluations,
                             const SavedEvaluations& saved) {
  std::vector<EvaluationRecord> evaluated;
  for (const EvaluationRecord& evaluation : evaluations) {
    saver_.Restore(evaluation);
    if (evaluation.set == Set()) evaluated.push_back(evaluation);
  }
  decisions_.Restore(evaluated, saved);
}

absl::Status JobEvaluations::Report(const v1::ReportEvaluationRequest& request,
                                    uint64_t term) {
  TRIBUTARY_RETURN_IF_ERROR(state_.Renew(v1::ROLE_WORKER, request.rank(),
                                         request.incarnation(),
                                         clock_->NowMicros()));
  // A sender with an earlier term may have parts that only the previous
  // coordinator had. Until it has sent them again, a later evaluation must not
  // be complete.
  if (request.term() < term && term > 1) {
    return absl::AbortedError(absl::StrCat("the evaluation names term ",
                                           request.term(),
                                           ", this coordinator has term ", term,
                                           "; send it again with term ", term));
  }
  if (request.test()) {
    TRIBUTARY_RETURN_IF_ERROR(reports_.AddTest(request));
    Decide();
    return absl::OkStatus();
  }
  TRIBUTARY_RETURN_IF_ERROR(reports_.evaluations().Add(request));
  Decide();
  TellStanding();
  return absl::OkStatus();
}

v1::ReportEvaluationResponse JobEvaluations::AnswerReport(
    const v1::ReportEvaluationRequest& request) const {
  v1::ReportEvaluationResponse response;
  const std::optional<int64_t> step =
      saver_.SavedStep(request.test() ? "test" : Set());
  if (step) response.set_saved_step(*step);
  return response;
}

void JobEvaluations::Decide() {
  for (EvaluationRecord& evaluation : reports_.TakeComplete()) {
    if (evaluation.set == Set()) decisions_.Add(evaluation);
    saver_.Add(std::move(evaluation));
  }
}

bool JobEvaluations::IsComplete(int64_t step) const {
  return reports_.evaluations().latest().step >= step;
}

absl::Status JobEvaluations::Stand(const v1::AwaitEvaluationRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(state_.CheckWorker(
      request.rank(), request.incarnation(), request.plan_epoch()));
  const bool same_plan = awaited_epoch_ == request.plan_epoch();
  awaited_step_ =
      same_plan ? std::max(awaited_step_, request.step()) : request.step();
  awaited_epoch_ = request.plan_epoch();
  TellStanding();
  return absl::OkStatus();
}

void JobEvaluations::TellStanding() {
  if (state_.InForce(awaited_epoch_) && IsComplete(awaited_step_)) {
    decisions_.Stand(awaited_step_, clock_->NowMicros());
  }
}

absl::StatusOr<v1::AwaitEvaluationResponse> JobEvaluations::Answer(
    int64_t step) const {
  return decisions_.Answer(step, IsComplete(step), clock_->NowMicros());
}

}  // namespace tributary
