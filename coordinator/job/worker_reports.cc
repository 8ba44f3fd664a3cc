// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/worker_reports.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/core/state_file.h"

namespace tributary {

void WorkerReports::Restore(const v1::CoordinatorState& state,
                            const RecordedSteps& recorded,
                            const std::vector<EvaluationRecord>& evaluations,
                            int64_t now_micros) {
  progress_.Continue(recorded);
  for (const EvaluationRecord& evaluation : evaluations) {
    const bool is_test = validates_ && evaluation.set == "test";
    (is_test ? tests_ : evaluations_).Restore(evaluation);
  }
  for (int rank = 0; rank < state.job().cluster().workers(); ++rank) {
    unheard_.insert(rank);
  }
  progress_micros_ = now_micros;
  // This clock does not know when the earlier coordinator began.
  if (state.has_plan()) begin_micros_ = now_micros;
}

absl::Status WorkerReports::AddTest(
    const v1::ReportEvaluationRequest& request) {
  if (validates_) return tests_.Add(request);
  return absl::InvalidArgumentError(
      "an evaluation on the test set beside the job's own wants "
      "data.validation in the job");
}

bool WorkerReports::HasEvaluations() const {
  return evaluations_.HasRecords(progress_.merged_step()) ||
         tests_.HasRecords(progress_.merged_step());
}

std::vector<EvaluationRecord> WorkerReports::TakeEvaluations() {
  std::vector<EvaluationRecord> taken =
      evaluations_.Take(progress_.merged_step());
  for (EvaluationRecord& test : tests_.Take(progress_.merged_step())) {
    taken.push_back(std::move(test));
  }
  return taken;
}

std::vector<std::string> WorkerReports::TakeNotices() {
  std::vector<std::string> notices = evaluations_.TakeNotices();
  for (std::string& notice : tests_.TakeNotices()) {
    notices.push_back(std::move(notice));
  }
  for (std::string& notice : progress_.TakeNotices()) {
    notices.push_back(std::move(notice));
  }
  return notices;
}

std::vector<EvaluationRecord> WorkerReports::TakeComplete() {
  std::vector<EvaluationRecord> complete = evaluations_.TakeComplete();
  for (EvaluationRecord& test : tests_.TakeComplete()) {
    complete.push_back(std::move(test));
  }
  return complete;
}

void WorkerReports::Begin(int64_t now_micros) {
  progress_micros_ = now_micros;
  if (begin_micros_ == 0) begin_micros_ = now_micros;
}

absl::StatusOr<uint32_t> WorkerReports::Take(
    const v1::HeartbeatRequest& request, int64_t now_micros) {
  const uint32_t rank = request.index();
  if (request.plan_epoch() > 0) {
    TRIBUTARY_RETURN_IF_ERROR(progress_.StartAt(rank, request.start_step()));
  }
  if (!request.steps().empty() && unheard_.count(rank) > 0) {
    const int64_t first = request.steps(0).step();
    if (first < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", rank, " reports step ", first, "; steps count from 1"));
    }
    unheard_.erase(rank);
    TRIBUTARY_RETURN_IF_ERROR(progress_.StartAt(rank, first - 1));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const uint32_t taken,
                             progress_.Add(rank, request.steps()));
  if (progress_.merged_step() != noted_step_) {
    noted_step_ = progress_.merged_step();
    progress_micros_ = now_micros;
  }
  return taken;
}

void WorkerReports::GiveUpSilent(const Membership& membership,
                                 int64_t final_step) {
  for (auto rank = unheard_.begin(); rank != unheard_.end();) {
    const Place& worker = membership.workers()[*rank];
    if (worker.alive || !worker.finished) {
      ++rank;
      continue;
    }
    // An error means that the gap is larger than a finished rank can have left.
    (void)progress_.StartAt(*rank, final_step);
    rank = unheard_.erase(rank);
  }
}

}  // namespace tributary
