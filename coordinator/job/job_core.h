// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/core/job_state.h"
#include "coordinator/core/members/rendezvous.h"
#include "coordinator/core/trace/trace_collector.h"
#include "coordinator/job/job_checkpoints.h"
#include "coordinator/job/job_ending.h"
#include "coordinator/job/job_evaluations.h"
#include "coordinator/job/job_news.h"
#include "coordinator/job/operator_requests.h"
#include "coordinator/job/state_saver.h"
#include "coordinator/job/worker_reports.h"

namespace tributary {

// The coordinator's core objects and what they do together. A plain object
// without lock and waits: JobControl owns it.
//
// Each coordinator of a job has a term, one higher than its predecessor's. A
// coordinator that hears of a higher term ends at once and saves nothing.
class JobCore {
 public:
  // An earlier coordinator of the same job.
  struct Predecessor {
    const v1::CoordinatorState* state = nullptr;  // as it saved it; null: none
    RecordedSteps recorded;                       // the steps that it recorded
    std::vector<HistoryEvent> events;             // the newest, oldest first
    // The evaluations that it saved, of all sets, in the order of steps.
    std::vector<EvaluationRecord> evaluations;
  };
  struct Options {
    JobState::Options state;
    const Clock* clock = nullptr;
    StateSaver::Save save;                   // may be null; called by Commit
    EvaluationSaver::Save save_evaluations;  // as `save`
    Predecessor predecessor;
    int64_t started_micros = 0;  // of the job, since 1970, UTC
  };

  explicit JobCore(Options options);

  // Saves the state; call it after every change. Once the state may be seen, it
  // begins the plan and publishes orders and messages.
  void Commit();
  // Why the newest state must not be seen yet; OK: it may be seen.
  absl::Status Held() const { return saver_.Held(); }

  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request);
  // See JobState::DeclareModel.
  absl::Status DeclareModel(const v1::DeclareModelRequest& request);
  // Checks the job and the term of a heartbeat. FailedPrecondition: it is of
  // another job. A higher term deposes this coordinator.
  absl::Status Hear(const v1::HeartbeatRequest& request);
  // Whether the reports of this heartbeat may be taken.
  bool MayTake(const v1::HeartbeatRequest& request) const;
  // Takes the events of a heartbeat, even when the job is over, because a
  // server may report its last step only then. False: not taken.
  bool TakeTrace(const v1::HeartbeatRequest& request) {
    return trace_.Take(request, state_.membership());
  }
  // Takes a heartbeat and answers it.
  absl::StatusOr<v1::HeartbeatResponse> Beat(
      const v1::HeartbeatRequest& request);
  // Renews the sender's lease, ignores its reports, and answers with the last
  // published state.
  absl::StatusOr<v1::HeartbeatResponse> HeldBeat(
      const v1::HeartbeatRequest& request);
  // Stores a rank's payload for its group.
  absl::Status Exchange(const v1::ExchangeRequest& request);

  void AllowStart(const std::string& checkpoint_directory);
  void Tick();
  // Sets what the job waits for besides members; an empty text: nothing.
  void SetWaits(const v1::Wait& what);

  // Call it once the members of a failed job have been told of the failure: no
  // more reports come, and those that are missing count as lost.
  void CloseReports();
  bool HasUpdate() const { return news_.Has(phase(), !Held().ok()); }
  JobUpdate TakeUpdate();
  JobWait Waiting() const;
  // Names what the job waits for or, when it is over, why it ended.
  std::string Message() const;
  v1::JobPhase phase() const {
    return Held().ok() ? state_.life().phase() : published_.phase();
  }

  JobState& state() { return state_; }
  const JobState& state() const { return state_; }
  WorkerReports& reports() { return reports_; }
  const WorkerReports& reports() const { return reports_; }
  JobCheckpoints& checkpoints() { return checkpoints_; }
  const JobCheckpoints& checkpoints() const { return checkpoints_; }
  JobEvaluations& evaluations() { return evaluations_; }
  const JobEvaluations& evaluations() const { return evaluations_; }
  OperatorRequests& requests() { return requests_; }
  const OperatorRequests& requests() const { return requests_; }
  JobEnding& ending() { return ending_; }
  const JobEnding& ending() const { return ending_; }
  const Rendezvous& rendezvous() const { return rendezvous_; }
  const EventHistory& events() const { return news_.events(); }
  const v1::FirstLoss& first_loss() const { return news_.first_loss(); }
  const StateSaver& saver() const { return saver_; }
  int64_t now() const { return clock_->NowMicros(); }

 private:
  void Restore(const Predecessor& predecessor);
  // Takes the steps that a worker reports after the job has failed.
  void TakeLate(const v1::HeartbeatRequest& request);
  // Resets everything that belongs to a plan when a new plan is in force.
  void BeginPlan();

  const Clock* const clock_;
  const int64_t started_micros_;
  JobState state_;
  WorkerReports reports_;
  TraceCollector trace_;
  JobCheckpoints checkpoints_;
  JobEvaluations evaluations_;
  Rendezvous rendezvous_;
  OperatorRequests requests_;
  JobEnding ending_;
  JobNews news_;
  StateSaver saver_;
  uint64_t begun_epoch_ = 0;  // the plan of checkpoints, groups and weights
  uint64_t taken_over_epoch_ = 0;    // of the previous coordinator; 0: none
  v1::HeartbeatResponse published_;  // for every member
  JobWait waits_;                    // other things than members
};

}  // namespace tributary
