#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/optimizer_options.h"
#include "tests/simulation/network.h"
#include "tributary/v1/job.pb.h"

namespace tributary::simulation {

// What goes wrong beside the messages, and when.
struct Mishap {
  enum class Kind {
    kCrashWorker,
    kCrashServer,
    kPauseWorker,  // SIGSTOP, then SIGCONT
    kPauseServer,
    kPauseCoordinator,
    kCrashCoordinator,  // another goes on with what it has kept
    kCutWorker,         // off one of the others, in one direction or both
    kCutServer,
    kFullDisk,
    kStop,               // somebody asks the job to stop
    kPowerCut,           // everything at once; then the job is resumed
    kDamagedCheckpoint,  // the newest
  };
  Kind kind = Kind::kCrashWorker;
  int64_t at_micros = 0;
  int64_t lasts_micros = 0;  // pauses, cuts; of a crash: until another process
  int target = 0;            // of the living ones, counted round
  bool known = false;        // a crash: whoever started the process sees it
  bool spare = false;        // another process stands by for the place
};

// One job and its troubles, all drawn from a seed.
struct Scenario {
  enum class Sync { kBulk, kBackup, kStale, kAsync };

  uint64_t seed = 0;
  Sync sync = Sync::kBulk;
  int backup_workers = 0;
  int64_t staleness = 0;
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
  bool large_parameter = false;  // one that is cut over the servers
  bool uneven_samples = false;

  bool fixed_places = true;  // a process wants the place it was started for
  bool same_address = true;  // a server's, when it is started again
  bool comes_back = true;    // lost processes are replaced
  int64_t heartbeat_ms = 200;
  int64_t lease_ms = 1000;
  std::vector<int64_t> compute_micros;  // of a step, by rank

  Adversity adversity;
  int64_t calm_micros = 0;  // nothing goes wrong from then on
  std::vector<Mishap> mishaps;

  // Contributions are gathered and applied together.
  bool gathers() const { return sync == Sync::kBulk || sync == Sync::kBackup; }
  std::string Text() const;
};

Scenario DrawScenario(uint64_t seed);

// The resolved job.
v1::JobSpec JobOf(const Scenario& scenario);

const char* NameOf(Mishap::Kind kind);

}  // namespace tributary::simulation
