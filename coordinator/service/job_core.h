// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/data_course.h"
#include "common/base/limits.h"
#include "coordinator/core/evaluation/divergence_watch.h"
#include "coordinator/core/evaluation/evaluation_decisions.h"
#include "coordinator/core/evaluation/skipped_steps.h"
#include "coordinator/core/event_history.h"
#include "coordinator/core/job_state.h"
#include "coordinator/core/rendezvous.h"
#include "coordinator/core/trace/trace_collector.h"
#include "coordinator/service/evaluation_saver.h"
#include "coordinator/service/job_checkpoints.h"
#include "coordinator/service/put_weights.h"
#include "coordinator/service/state_saver.h"
#include "coordinator/service/worker_reports.h"

namespace tributary {

// News since the last call.
struct JobUpdate {
  std::vector<StepRecord> steps;              // in order, each once
  std::vector<EvaluationRecord> evaluations;  // after their steps
  v1::JobPhase phase = v1::JOB_PHASE_WAITING;
  std::string message;      // WAITING: for which members; FAILED: why
  int64_t total_steps = 0;  // 0: the model is not declared, or the end is open
  DataCourse course;        // empty: the model is not declared
  std::vector<std::string> notices;  // messages about losses and checkpoints
  std::vector<HistoryEvent> events;  // for the job's history, oldest first
  std::vector<TraceBatch> trace;     // events of traced steps
  // The model, once rank 0 has declared it.
  std::shared_ptr<const v1::DeclareModelRequest> model;
  // Why another coordinator has replaced this one, which then leaves its files
  // alone; empty: it has not been replaced.
  std::string deposed;
};

// A wait of the whole job, and when it began by the clock. False: no wait.
struct JobWait {
  v1::Wait wait;
  int64_t since_micros = 0;

  explicit operator bool() const { return !wait.text().empty(); }
};

// The coordinator's core objects and what they do together. A plain object
// without lock and waits: JobControl owns it.
//
// Each coordinator of a job has a term, one higher than its predecessor's. A
// coordinator that hears of a higher term ends at once and saves nothing.
class JobCore {
 public:
  // An earlier coordinator of the same job.
  struct Predecessor {
    const v1::CoordinatorState* state = nullptr;  // that it saved; null: none
    RecordedSteps recorded;                       // that it recorded
    std::vector<HistoryEvent> events;             // the newest, oldest first
    // Those that it saved, of all sets, in the order of steps.
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

  // Call it after every change: saves the state. Once the state may be seen it
  // begins the plan and publishes orders and messages.
  void Commit();
  // Why the newest state must not be seen yet; OK: it may.
  absl::Status Held() const { return saver_.Held(); }

  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request);
  // FailedPrecondition: a heartbeat of another job. A higher term deposes this
  // coordinator.
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
  // Aborted: the sender does not know this coordinator's term yet.
  absl::Status ReportEvaluation(const v1::ReportEvaluationRequest& request);
  // The answer to the same request, once its evaluation is saved.
  v1::ReportEvaluationResponse AnswerReport(
      const v1::ReportEvaluationRequest& request) const;
  // A rank has reported its part of the evaluation after this step and begins
  // no other before AnswerEvaluation answers. FailedPrecondition: it has no
  // place in this plan.
  absl::Status StandAt(const v1::AwaitEvaluationRequest& request);
  // As EvaluationDecisions::Answer.
  absl::StatusOr<v1::AwaitEvaluationResponse> AnswerEvaluation(
      int64_t step) const;
  // Stores a rank's payload for its group.
  absl::Status Exchange(const v1::ExchangeRequest& request);
  absl::Status Put(const v1::PutWeightsRequest& request);

  // As JobCheckpoints::NextManifest, with the evaluations.
  std::optional<PendingManifest> NextManifest();

  // Stops the job as a person wants. FailedPrecondition: it is over, or would
  // not leave the checkpoint that the request demands.
  absl::StatusOr<v1::StopJobResponse> Stop(const v1::StopJobRequest& request);

  // Asks for a checkpoint of at least `after` steps, unless one is on its way.
  // FailedPrecondition: the job writes none, or is over.
  absl::Status AskCheckpoint(int64_t after);
  // The newest checkpoint, if it has at least `after` steps. DeadlineExceeded
  // says what is missing; Aborted: it has failed.
  absl::StatusOr<v1::TakeCheckpointResponse> AnswerCheckpoint(
      int64_t after) const;

  void AllowStart(const std::string& checkpoint_directory);
  void Tick();
  // Whether this plan is the newest and has not ended.
  bool InForce(uint64_t plan_epoch) const;
  // True once all workers have finished and have reported their last step.
  bool ReadyToSave() const;
  // The weights that the ranks have sent after this step. FailedPrecondition:
  // some are missing; the message names the ranks that are asked for them.
  absl::StatusOr<FinalWeights> TakePutWeights(int64_t step) const;
  // The final weights are saved, or cannot be; ends the job. An error is
  // ignored when the plan is no longer in force: then all members start over.
  void Saved(uint64_t plan_epoch, const absl::Status& status);
  void SetWaits(const v1::Wait& what);

  bool HasUpdate() const;
  JobUpdate TakeUpdate();
  JobWait Waiting() const;
  // Names what the job waits for or, when it is over, why it ended.
  std::string Message() const;
  v1::JobPhase phase() const {
    return Held().ok() ? state_.phase() : published_.phase();
  }

  JobState& state() { return state_; }
  const JobState& state() const { return state_; }
  WorkerReports& reports() { return reports_; }
  const WorkerReports& reports() const { return reports_; }
  JobCheckpoints& checkpoints() { return checkpoints_; }
  const JobCheckpoints& checkpoints() const { return checkpoints_; }
  const EvaluationDecisions& decisions() const { return decisions_; }
  const Rendezvous& rendezvous() const { return rendezvous_; }
  const EventHistory& events() const { return events_; }
  const StateSaver& saver() const { return saver_; }
  int64_t now() const { return clock_->NowMicros(); }

 private:
  void Note(std::string notice);
  void Note(std::vector<std::string> notices);
  // Says which steps changed nothing. Says, or fails the job, when training
  // diverges.
  void WatchSteps(const std::vector<StepRecord>& steps);
  void Restore(const Predecessor& predecessor);
  // Takes the steps that a worker reports after the job has failed.
  void TakeLate(const v1::HeartbeatRequest& request);
  // Whether notices wait until the evaluation that has stopped the job is
  // shown.
  bool HoldsNotices() const {
    return state_.stop().stopped_early() && !state_.over() &&
           reports_.evaluations().HasRecords(kMaxStep) &&
           !reports_.HasEvaluations();
  }
  // Takes the evaluations that are complete now.
  void Decide();
  bool IsEvaluated(int64_t step) const;
  // Why a stop now would leave no checkpoint; OK: it would.
  absl::Status LeavesCheckpoint() const;
  absl::Status Over() const;  // the error of a call that wants a living job
  void HoldForCheckpoint();
  // For whom the workers are held: "waits for worker 1 to finish step 6".
  std::string HeldFor() const;
  JobWait HoldWait() const;  // empty while the hold is short
  // Whether the servers may take their snapshots of the asked checkpoint.
  bool StandsForCheckpoint() const;
  // Holds the workers for a checkpoint that is asked for, and lets them go on
  // when it needs them no more.
  void FollowAskedCheckpoint();
  // Resets everything that belongs to a plan when a new plan is in force.
  void BeginPlan();
  // The ranks whose final weights are missing once all workers have finished.
  std::vector<uint32_t> WeightsWanted() const;
  bool HasModel() const {
    return !model_shown_ && state_.knows_inputs() && Held().ok();
  }
  void WantWeights();

  const Clock* const clock_;
  const int64_t started_micros_;
  JobState state_;
  WorkerReports reports_;
  TraceCollector trace_;
  JobCheckpoints checkpoints_;
  EvaluationDecisions decisions_;
  DivergenceWatch divergence_;
  SkippedSteps skipped_steps_;
  Rendezvous rendezvous_;
  PutWeights put_weights_;
  StateSaver saver_;
  EvaluationSaver evaluation_saver_;
  int64_t asked_after_ = 0;    // AskCheckpoint; 0: nobody waits
  int64_t held_micros_ = 0;    // since when the workers are held
  uint64_t begun_epoch_ = 0;   // the plan of checkpoints, groups and weights
  uint64_t wanted_epoch_ = 0;  // the plan whose weights were asked for again
  uint64_t taken_over_epoch_ = 0;  // of the previous coordinator; 0: none
  std::vector<std::string> notices_;
  EventHistory events_;
  v1::HeartbeatResponse published_;  // for every member
  v1::JobPhase logged_phase_ = v1::JOB_PHASE_WAITING;
  v1::JobPhase shown_phase_ = v1::JOB_PHASE_UNSPECIFIED;
  JobWait waits_;  // for other things than members
  bool model_shown_ = false;
};

}  // namespace tributary
