// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/job/job_run_options.h"
#include "cli/run/resume.h"
#include "common/command_line/telemetry_options.h"
#include "common/job/program/program_job.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

struct ProgramRunOptions {
  ProgramJobSource source;  // with the number of workers among its overrides
  v1::JobSpec base;         // of the source (ParseProgramBase)
  // The program's path and its arguments.
  std::vector<std::string> command;
  JobRunOptions::Commands commands;
  // Starts the program only once: the program starts the ranks itself.
  bool once = false;
  std::string run_dir;                 // empty: runs/NAME-DATE-TIME
  std::string listen = "127.0.0.1:0";  // of the coordinator
  TelemetryOptions telemetry;
  std::optional<ResumePoint> resume;
  bool insecure = false;       // without TLS
  std::string checkpoint_key;  // JobRunOptions
};

// Runs a program as the ranks of a job, with the coordinator in this process
// and the servers as its children. Shows the progress and the first rank's
// output, leaves a run directory and returns the exit code (exit_codes.h). As
// RunLocally, call Interrupts::Install first, and call this on the thread that
// lives longest.
int RunProgram(const ProgramRunOptions& options);

}  // namespace tributary
