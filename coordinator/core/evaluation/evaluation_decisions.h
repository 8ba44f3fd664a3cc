// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/core/evaluation/best_evaluation.h"
#include "coordinator/core/evaluation/evaluations.h"
#include "coordinator/core/job_state.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The decisions that a job makes by its evaluations: whether training stops
// early, and which steps' checkpoints are kept as the best (EvaluationSpec).
// After each evaluation the ranks wait for the decision, so all of them stop at
// the same step, and the servers still have the weights that were evaluated. A
// plain object.
class EvaluationDecisions {
 public:
  // How long the ranks wait for the servers' snapshots of the best weights.
  static constexpr int64_t kSnapshotMicros = 60'000'000;

  // `state` must outlive this object.
  explicit EvaluationDecisions(JobState* state);

  // Whether the ranks wait for decisions at all.
  bool decides() const { return keeps_best_ || stop_after_ > 0; }
  // Takes the next complete evaluation of the job; an evaluation is ignored
  // unless it is later than all before. An evaluation counts only at the end of
  // an epoch or of the job, or if it is due by every_steps: otherwise the run
  // was stopped at its step. The job's course must be known.
  void Add(const EvaluationRecord& evaluation);

  // Adds the newest evaluation up to `step`, and what was decided by then, to a
  // state or a manifest. Adds nothing if there is no such evaluation.
  void Save(int64_t step, SavedEvaluations* saved) const;
  // Continues after the evaluations of an earlier coordinator: their records,
  // in the order of steps, and the content of a state or a manifest. If these
  // differ, the state or manifest is right, because a record may be damaged.
  void Restore(const std::vector<EvaluationRecord>& records,
               const SavedEvaluations& saved);

  // Everybody goes back to `step` and then computes other weights than before:
  // the evaluations of later steps no longer count, and these steps get no new
  // ones.
  void GoBack(int64_t step);

  // Sets the basis (EvaluationBasis) of evaluations from now on. If earlier
  // ones had another basis, the search for the best begins anew. Returns a
  // message about that; empty: there is nothing to say. Basis 0 is unknown and
  // changes nothing.
  std::string SetBasis(uint32_t basis);

  // All ranks have evaluated after `step` and wait there. Asks for a checkpoint
  // of this step if its weights are the best. Ignores a step that is lower than
  // an earlier call's in this plan.
  void Stand(int64_t step, int64_t now_micros);
  // Returns the answer to a rank that waits for the decision after `step`.
  // `complete`: all parts of the evaluation have arrived. DeadlineExceeded
  // names what is missing.
  absl::StatusOr<v1::AwaitEvaluationResponse> Answer(int64_t step,
                                                     bool complete,
                                                     int64_t now_micros) const;

  // The step whose snapshot the servers shall take now, and keep until it is
  // written; 0: none.
  int64_t cut_step() const;

  // The best evaluation, also if the job decides nothing by it.
  const BestEvaluation& best() const { return best_; }
  // The step whose checkpoint is kept as the best; 0: none.
  int64_t kept_step() const {
    return keeps_best_ ? best_.step().value_or(0) : 0;
  }

 private:
  // An evaluation, and what was decided after it.
  struct Entry {
    EvaluationRecord evaluation;
    std::optional<int64_t> best_step;
    double best_value = 0;
    int64_t since_best = 0;
    int64_t newest = 0;
  };

  // Whether evaluations can be compared. A resumed run may need the best one
  // although this job decides nothing by it.
  bool compares() const { return !best_.metric().empty(); }
  // Returns an entry with this evaluation and the present decisions.
  Entry EntryOf(const EvaluationRecord& evaluation) const;
  // Like Add, but never stops the job.
  void Count(const EvaluationRecord& evaluation);
  // Stops the job after the newest evaluation, if enough have come since the
  // best.
  void StopIfDue();
  // Whether to ask for a checkpoint of the best weights, which are those after
  // `step`. Also true if a checkpoint of this step is due anyway: no later one
  // may take its place. False at the job's end, when no later one comes.
  bool AsksForCheckpoint(int64_t step) const;

  JobState& state_;
  const bool keeps_best_;
  const int64_t stop_after_;
  BestEvaluation best_;
  int64_t newest_ = 0;  // step of the newest evaluation that counts
  uint32_t basis_ = 0;  // of the evaluations so far; 0: unknown
  // The metric by which the checkpoint's job compared, until a notice names it;
  // empty: there is nothing to say.
  std::string other_metric_;
  // An entry for every evaluation, because a manifest may be of an earlier
  // step.
  std::vector<Entry> entries_;
  // The newest step with a checkpoint of the best weights, and its plan.
  int64_t cut_step_ = 0;
  uint64_t cut_epoch_ = 0;
  int64_t cut_micros_ = 0;  // when cut_step_ was set
};

}  // namespace tributary
