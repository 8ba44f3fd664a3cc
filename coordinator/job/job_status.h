// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "coordinator/core/evaluation/evaluation_decisions.h"
#include "coordinator/core/job_state.h"
#include "coordinator/job/job_checkpoints.h"
#include "coordinator/job/worker_reports.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// "waiting", "running", "stopping", "done", "failed" or "unknown".
const char* PhaseWord(v1::JobPhase phase);

// The steps that the job has done: those that every worker has reported, and
// those up to a checkpoint. A failed job has also done the steps that any
// worker has reported, because a lost worker's reports never come.
int64_t StepsDone(const JobState& state, const WorkerReports& reports,
                  const JobCheckpoints& checkpoints);

// The answer to `tributary status`, without phase and message.
v1::JobStatusResponse JobStatusOf(const JobState& state,
                                  const WorkerReports& reports,
                                  const JobCheckpoints& checkpoints,
                                  int64_t now_micros);

// Totals of a whole run.
struct JobTotals {
  int64_t steps = 0;  // StepsDone
  int64_t epochs = 0;
  uint64_t samples = 0;
  int64_t skipped_steps = 0;         // changed nothing (nonfinite: skip)
  double training_seconds = 0;       // of the steps alone
  std::optional<double> final_loss;  // the newest; nullopt: there is none
  uint64_t bytes_sent = 0;           // by the workers
  uint64_t bytes_received = 0;       // by the workers
  bool stopped = false;              // before all steps, on request
  bool stopped_unbegun = false;      // on request, before there was a plan
  bool refused = false;              // by a member, before the first step ended
  int64_t start_step = 0;            // where a resumed run began
  int64_t checkpoint_step = 0;       // of the newest complete one; 0: none
  uint64_t rollbacks = 0;
  uint64_t workers_lost = 0;
  uint64_t servers_lost = 0;
  bool stopped_early = false;  // by the job's evaluations
  // The best of the evaluations that a job compares; step 0: none.
  struct Best {
    std::string metric;
    int64_t step = 0;
    double value = 0;
  } best;
};

JobTotals JobTotalsOf(const JobState& state, const WorkerReports& reports,
                      const JobCheckpoints& checkpoints,
                      const EvaluationDecisions& decisions);

}  // namespace tributary
