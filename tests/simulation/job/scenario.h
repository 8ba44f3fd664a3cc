// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/optimizer/optimizer_options.h"
#include "tests/simulation/world/network.h"
#include "tributary/v1/job.pb.h"

namespace tributary::simulation {

// A fault other than the network's, and when it happens.
struct Mishap {
  enum class Kind {
    kCrashWorker,
    kCrashServer,
    kPauseWorker,  // SIGSTOP, then SIGCONT
    kPauseServer,
    kPauseCoordinator,
    kCrashCoordinator,  // another one continues from its saved state
    kCutWorker,         // from another process, in one or both directions
    kCutServer,
    kFullDisk,
    kStop,               // a user asks the job to stop
    kPowerCut,           // ends all processes; then the job is resumed
    kDamagedCheckpoint,  // damages the newest one
    kAskCheckpoint,      // a user asks for a checkpoint
  };
  Kind kind = Kind::kCrashWorker;
  int64_t at_micros = 0;
  int64_t lasts_micros = 0;  // of pauses and cuts; of a crash: until restart
  int target = 0;            // index among the living processes, modulo
  bool known = false;        // of a crash: the process's starter sees it
  bool spare = false;        // another process waits for the place
};

// One job and its faults, all drawn from a seed.
struct Scenario {
  enum class Sync { kBulk, kBackup, kStale, kAsync };

  uint64_t seed = 0;
  Sync sync = Sync::kBulk;
  int backup_workers = 0;
  int64_t staleness = 0;
  int delay = 0;  // of a bulk synchronous job
  int workers = 3;
  int servers = 2;
  int servers_after_resume = 2;
  int64_t steps = 10;
  int64_t checkpoint_every = 0;
  v1::WorkerLoss on_worker_loss = v1::WORKER_LOSS_WAIT;

  OptimizerOptions optimizer;
  double clip_norm = 0;
  bool skip_nonfinite = false;  // and one gradient is not finite
  int parameters = 3;
  bool large_parameter = false;  // a parameter split over servers
  bool uneven_samples = false;
  bool adds_early = false;  // ranks announce the samples of all ranks
  bool residuals = false;   // gradients are encoded, with error feedback
  bool at_end = false;      // the job leaves a checkpoint of its last step

  bool fixed_places = true;  // a process wants its old place
  bool same_address = true;  // a restarted server keeps its address
  bool comes_back = true;    // lost processes are replaced
  int64_t heartbeat_ms = 200;
  int64_t lease_ms = 1000;
  std::vector<int64_t> compute_micros;  // time of a step, by rank

  Adversity adversity;
  int64_t calm_micros = 0;  // no faults from then on
  std::vector<Mishap> mishaps;

  // Whether contributions are gathered and applied together.
  bool gathers() const { return sync == Sync::kBulk || sync == Sync::kBackup; }
  std::string Text() const;
};

Scenario DrawScenario(uint64_t seed);

// The resolved job.
v1::JobSpec JobOf(const Scenario& scenario);

const char* NameOf(Mishap::Kind kind);

}  // namespace tributary::simulation
