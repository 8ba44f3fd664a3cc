#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/core/evaluations.h"
#include "coordinator/core/progress.h"
#include "tributary/v1/checkpoint.pb.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// News since the last call.
struct JobUpdate {
  std::vector<StepRecord> steps;              // in order, each once
  std::vector<EvaluationRecord> evaluations;  // after their steps
  v1::JobPhase phase = v1::JOB_PHASE_WAITING;
  std::string message;      // WAITING: for which members; FAILED: why
  int64_t total_steps = 0;  // this and the next: 0 before the model is declared
  int64_t steps_per_epoch = 0;
  std::vector<std::string> notices;  // messages about losses and checkpoints
  // Why another coordinator has replaced this one, which then leaves its files
  // alone; empty: it has not been replaced.
  std::string deposed;
};

// Totals of a whole run.
struct JobTotals {
  int64_t steps = 0;  // finished by every worker
  int64_t epochs = 0;
  uint64_t samples = 0;
  double training_seconds = 0;  // of the steps alone
  double final_loss = 0;        // of the last step
  uint64_t bytes_sent = 0;      // by the workers
  uint64_t bytes_received = 0;  // by the workers
  bool stopped = false;         // before all steps, on request
  int64_t start_step = 0;       // where a resumed run began
  int64_t checkpoint_step = 0;  // of the newest complete one; 0: none
  uint64_t rollbacks = 0;
  uint64_t workers_lost = 0;
  uint64_t servers_lost = 0;
};

// A checkpoint whose files are complete; only the manifest is missing.
struct PendingManifest {
  std::string directory;
  v1::CheckpointManifest manifest;
  uint64_t plan_epoch = 0;  // the plan that its step was computed under
};

// A checkpoint that a plan starts from and that a member cannot read.
struct UnreadableCheckpoint {
  uint64_t plan_epoch = 0;
  int64_t step = 0;
  std::string folder;
  std::string directory;  // where the job writes; empty: no checkpoints
  std::string why;        // "server 1: FILE: byte ..."
};

}  // namespace tributary
