#pragma once

#include <cstdint>
#include <string>

#include "cli/run/hosts.h"
#include "common/telemetry/flags.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

struct LocalRunOptions {
  v1::JobSpec job;                     // resolved
  std::string run_dir;                 // empty: runs/NAME-DATE-TIME
  std::string listen = "127.0.0.1:0";  // the coordinator's
  Hosts hosts;                         // of servers and workers
  TelemetryOptions telemetry;
  // Where a resumed run begins: a checkpoint's folder and its step.
  std::string restore_from;
  uint64_t lineage = 0;
  uint32_t restored_data = 0;
  int64_t start_step = 0;
};

// Trains: the coordinator in this process, servers and workers as its children
// or, on other hosts, as those of its launchers. Shows how it goes, leaves a
// run directory, returns the exit code (job_run.h). Interrupts::Install comes
// first; call it on the thread that lives longest, the children die with it.
int RunLocally(const LocalRunOptions& options);

}  // namespace tributary
