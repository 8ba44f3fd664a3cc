// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/core/evaluation/evaluations.h"
#include "coordinator/core/job_plan.h"
#include "coordinator/core/members/membership.h"
#include "coordinator/core/progress.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The steps and evaluations that the workers of a job report. A coordinator
// that takes over continues after the recorded steps; each rank's reports
// continue from their own step. A plain object: time is passed in.
class WorkerReports {
 public:
  // `start`: where the job starts.
  WorkerReports(const v1::JobSpec& job, const JobStart& start)
      : progress_(job.cluster().workers(), start.step,
                  start.manifest ? start.manifest->skipped_steps() : 0),
        evaluations_(job.training().loss(), job.cluster().workers(),
                     EvaluatedSet(job)),
        validates_(job.data().has_validation()),
        tests_(job.training().loss(), job.cluster().workers()) {}

  // Continues after an earlier coordinator of the job, which has completed
  // these evaluations.
  void Restore(const v1::CoordinatorState& state, const RecordedSteps& recorded,
               const std::vector<EvaluationRecord>& evaluations,
               int64_t now_micros);
  // The job's steps begin, or continue.
  void Begin(int64_t now_micros);

  // Takes a worker's steps and returns how many, from the front, are settled.
  // Errors as Progress::StartAt and Progress::Add.
  absl::StatusOr<uint32_t> Take(const v1::HeartbeatRequest& request,
                                int64_t now_micros);
  // Stops waiting for the reports of ranks that finished and exited before this
  // coordinator heard from them.
  void GiveUpSilent(const Membership& membership, int64_t final_step);

  // The last step of a worker; for a server, the last merged step.
  int64_t LastStepOf(const Place& place) const {
    return place.role == v1::ROLE_WORKER ? progress_.last_step(place.index)
                                         : progress_.merged_step();
  }
  const Progress& progress() const { return progress_; }
  Progress& progress() { return progress_; }
  const Evaluations& evaluations() const { return evaluations_; }
  Evaluations& evaluations() { return evaluations_; }
  // The evaluations on the test set, if the job's own are on its validation
  // set.
  const Evaluations& tests() const { return tests_; }
  // InvalidArgument: the job has no validation set, or the part contradicts
  // itself.
  absl::Status AddTest(const v1::ReportEvaluationRequest& request);

  // Whether either set has complete evaluations of steps that have ended.
  bool HasEvaluations() const;
  std::vector<EvaluationRecord> TakeEvaluations();
  std::vector<std::string> TakeNotices();
  // Takes the evaluations of both sets that were completed since the last call.
  std::vector<EvaluationRecord> TakeComplete();

  // When a step last ended (before the first: when training began), and when
  // training began. 0: not yet.
  int64_t progress_micros() const { return progress_micros_; }
  int64_t begin_micros() const { return begin_micros_; }

 private:
  Progress progress_;
  Evaluations evaluations_;
  const bool validates_;
  Evaluations tests_;
  std::set<uint32_t> unheard_;  // ranks without reports since Restore
  int64_t noted_step_ = 0;
  int64_t progress_micros_ = 0;  // when that step ended
  int64_t begin_micros_ = 0;
};

}  // namespace tributary
