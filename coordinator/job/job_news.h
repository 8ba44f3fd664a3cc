// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/data_course.h"
#include "coordinator/core/evaluation/divergence_watch.h"
#include "coordinator/core/event_history.h"
#include "coordinator/core/job_state.h"
#include "coordinator/core/trace/trace_collector.h"
#include "coordinator/job/worker_reports.h"

namespace tributary {

// News since the last call.
struct JobUpdate {
  std::vector<StepRecord> steps;              // in order, each once
  std::vector<EvaluationRecord> evaluations;  // after their steps
  v1::JobPhase phase = v1::JOB_PHASE_WAITING;
  std::string message;      // WAITING: missing members; FAILED: the reason
  int64_t total_steps = 0;  // 0: the model is not declared, or the end is open
  DataCourse course;        // empty: the model is not declared
  std::vector<std::string> notices;  // messages about losses and checkpoints
  std::vector<HistoryEvent> events;  // for the job's history, oldest first
  std::vector<TraceBatch> trace;     // events of traced steps
  // The model, once rank 0 has declared it.
  std::shared_ptr<const v1::DeclareModelRequest> model;
  // Why another coordinator has replaced this one, which then no longer changes
  // its files; empty: it has not been replaced.
  std::string deposed;
};

// Keeps the news of a job for the process that runs the coordinator: steps,
// evaluations, and sentences about the job, which are logged too. A plain
// object: its owner locks.
class JobNews {
 public:
  // Both must outlive this object.
  JobNews(JobState* state, WorkerReports* reports);

  // Continues after an earlier coordinator, which recorded steps up to `step`.
  void Restore(const std::vector<HistoryEvent>& events, int64_t step,
               const v1::FirstLoss& first);
  void Note(std::string notice);
  void Note(std::vector<std::string> notices);
  // Logs the phase if it is new, and returns whether it is. Call it when the
  // state may be seen.
  bool NotePhase();
  void AddCheckpoint(int64_t step) { events_.AddCheckpoint(step); }

  // Whether there is news. `phase`: the phase that may be seen. `held`: the
  // state must not be seen yet.
  bool Has(v1::JobPhase phase, bool held) const;
  // Takes all news except phase, message, trace and deposed. Notes whether
  // training diverges, which may fail the job.
  JobUpdate Take(bool held);
  void Show(v1::JobPhase phase) { shown_phase_ = phase; }
  const EventHistory& events() const { return events_; }
  // The job's first loss; its step is 0 until the first step has ended.
  const v1::FirstLoss& first_loss() const { return divergence_.first(); }

 private:
  void WatchSteps(const std::vector<StepRecord>& steps);
  // Whether notices wait until the evaluation that has stopped the job is
  // shown.
  bool HoldsNotices() const;
  bool HasModel(bool held) const {
    return !model_shown_ && state_.plans().knows_inputs() && !held;
  }

  JobState& state_;
  WorkerReports& reports_;
  DivergenceWatch divergence_;
  // Whether divergence_ has the right first loss. The checkpoint's first loss
  // does not count if the training data have changed.
  bool knows_first_ = false;
  std::vector<std::string> notices_;
  EventHistory events_;
  v1::JobPhase logged_phase_ = v1::JOB_PHASE_WAITING;
  v1::JobPhase shown_phase_ = v1::JOB_PHASE_UNSPECIFIED;
  bool model_shown_ = false;
};

}  // namespace tributary
