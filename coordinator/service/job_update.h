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

// What has happened since the last look.
struct JobUpdate {
  std::vector<StepRecord> steps;              // in order, each once
  std::vector<EvaluationRecord> evaluations;  // after the steps they evaluate
  v1::JobPhase phase = v1::JOB_PHASE_WAITING;
  std::string message;      // WAITING: for whom; FAILED: why
  int64_t total_steps = 0;  // this and below: 0 before the model is declared
  int64_t steps_per_epoch = 0;
  std::vector<std::string> notices;  // sentences about losses and checkpoints
  // Why this coordinator has ended without a word to its files; empty: it has
  // not.
  std::string deposed;
};

// What a whole run came to.
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

// A checkpoint of which every file is there.
struct PendingManifest {
  std::string directory;
  v1::CheckpointManifest manifest;
  uint64_t plan_epoch = 0;  // under which its step was made
};

// A member cannot read the checkpoint that the plan begins with.
struct UnreadableCheckpoint {
  uint64_t plan_epoch = 0;
  int64_t step = 0;
  std::string folder;
  std::string directory;  // where the job writes; empty: nowhere
  std::string why;        // "server 1: FILE: byte ..."
};

// How the state of a JobControl is kept.
struct Saving {
  bool allowed = false;     // AllowStart was called
  std::string saved;        // the bytes on the disk
  std::string saved_ahead;  // what must be there before it is seen, of them
  std::string tried;        // in vain, the last time
  int64_t tried_micros = 0;
  absl::Status error;       // why the newest is not saved
  bool held = false;        // and must be before it is seen
  int64_t held_micros = 0;  // since when
  bool given_up = false;    // it took too long
};

}  // namespace tributary
