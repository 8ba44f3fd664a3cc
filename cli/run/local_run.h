// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/run/job/job_run_options.h"
#include "cli/run/processes/hosts.h"
#include "common/command_line/telemetry_options.h"
#include "coordinator/core/job_plan.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

struct LocalRunOptions {
  v1::JobSpec job;      // resolved
  std::string run_dir;  // empty: runs/NAME-DATE-TIME
  Hosts hosts;          // of servers and workers, and the coordinator's address
  TelemetryOptions telemetry;
  // Where a resumed run starts: a checkpoint's directory and step.
  JobStart start;
  std::string data_record;  // as in JobRunOptions, like the next two
  std::string checkpoint_key;
  JobRunOptions::Commands commands;
  bool insecure = false;  // without TLS
  // Computes only some steps of the job, for `tributary replay`: prints only
  // errors, and stops once all workers have finished the last of these steps.
  struct Probe {
    int64_t first_step = 0;  // from 1
    int64_t last_step = 0;   // 0: not a replay
    std::string folder;      // for what the workers find (worker/train/trainer/
                             // step_probe.h); must exist
  } probe;
};

// FailedPrecondition: the job's workers would exchange in clear text at
// addresses that other machines reach, and neither --insecure-groups nor
// --insecure allows it (Access::CheckListenInClear).
absl::Status CheckGroups(const v1::JobSpec& job, const Hosts& hosts,
                         bool insecure);

// Trains with the coordinator in this process. Servers and workers are its
// children or, on other hosts, children of its launchers. Shows the progress,
// leaves a run directory and returns the exit code (exit_codes.h). Call
// Interrupts::Install first, and call this on the thread that lives longest,
// because the children die with it.
int RunLocally(const LocalRunOptions& options);

}  // namespace tributary
