// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/core/evaluation/evaluation_decisions.h"
#include "coordinator/core/job_state.h"
#include "coordinator/job/evaluation_saver.h"
#include "coordinator/job/worker_reports.h"

namespace tributary {

// The evaluations of a job: adds up the parts of the ranks, saves complete
// evaluations, and decides by them. A plain object: its owner locks.
class JobEvaluations {
 public:
  // `state` and `reports` must outlive this object.
  JobEvaluations(JobState* state, WorkerReports* reports,
                 EvaluationSaver::Save save, const Clock* clock);

  // Begins a new job: it continues after the evaluations of the checkpoint from
  // which it starts, if they are of the same set.
  void Begin();
  // A new plan has replaced one that this coordinator has seen.
  void GoBack();
  // Continues after the evaluations of an earlier coordinator, which `reports`
  // must know already.
  void Restore(const std::vector<EvaluationRecord>& evaluations,
               const SavedEvaluations& saved);

  // Call it when a rank has declared model and data. Returns a message, as
  // EvaluationDecisions::SetBasis.
  std::string Declared() {
    return decisions_.SetBasis(state_.plans().evaluation_basis());
  }

  // Takes a rank's part. Aborted: the sender does not know `term`, the term of
  // this coordinator, yet.
  absl::Status Report(const v1::ReportEvaluationRequest& request,
                      uint64_t term);
  // The answer to the same request, once its evaluation is saved.
  v1::ReportEvaluationResponse AnswerReport(
      const v1::ReportEvaluationRequest& request) const;
  // A rank has reported its part of the evaluation after this step. It begins
  // no other step before Answer answers. FailedPrecondition: it has no place in
  // this plan.
  absl::Status Stand(const v1::AwaitEvaluationRequest& request);
  // See EvaluationDecisions::Answer.
  absl::StatusOr<v1::AwaitEvaluationResponse> Answer(int64_t step) const;

  // Saves new evaluations for a later coordinator. Adds messages about failures
  // to `notices`.
  void SaveNew(std::vector<std::string>* notices) { saver_.Update(notices); }
  const EvaluationDecisions& decisions() const { return decisions_; }

 private:
  // Takes the evaluations that are complete now.
  void Decide();
  // Tells decisions_ that all ranks wait, if they do.
  void TellStanding();
  bool IsComplete(int64_t step) const;
  std::string Set() const;

  JobState& state_;
  WorkerReports& reports_;
  const Clock* const clock_;
  EvaluationDecisions decisions_;
  EvaluationSaver saver_;
  // The last evaluation that a rank waits for, and its plan. The parts of an
  // evaluation may be those of an earlier plan: they do not say where the ranks
  // are.
  int64_t awaited_step_ = 0;
  uint64_t awaited_epoch_ = 0;
};

}  // namespace tributary
