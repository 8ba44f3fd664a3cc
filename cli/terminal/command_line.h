// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/command_line/command_line.h"

namespace tributary {

// Adds the commands of the program `tributary`.
void AddTrainCommand(CommandLine& program);
void AddRunCommand(CommandLine& program);
void AddCertificatesCommand(CommandLine& program);
void AddStatusCommand(CommandLine& program);
void AddWhyCommand(CommandLine& program);
void AddLogsCommand(CommandLine& program);
void AddStopCommand(CommandLine& program);
void AddListCommand(CommandLine& program);
void AddCheckpointCommand(CommandLine& program);
// Adds `take` to the command `checkpoint`.
void AddCheckpointTakeCommand(CommandLine& checkpoint);
void AddCompareCommand(CommandLine& program);
void AddExportCommand(CommandLine& program);
void AddPlanCommand(CommandLine& program);
void AddTraceCommand(CommandLine& program);
void AddPredictCommand(CommandLine& program);
void AddEvaluateCommand(CommandLine& program);
void AddReplayCommand(CommandLine& program);
void AddBisectCommand(CommandLine& program);
void AddSchemaCommand(CommandLine& program);

// The job file of a command, and the changes that the command makes.
struct CommandJob {
  std::string path;
  std::vector<std::string> overrides;  // key=value
  std::string device;                  // empty: the job's

  // Returns `overrides`, with an override for `device` if it is set.
  std::vector<std::string> Overrides() const;
};

// --set key=value, may be repeated.
void AddOverrides(CommandLine& command, std::vector<std::string>* overrides);
// The job file, as a positional argument.
void AddJobPath(CommandLine& command, CommandJob* job);
// --set and --device.
void AddJobChanges(CommandLine& command, CommandJob* job);

// Parses the command line and runs the action. A wrong command line prints one
// line on standard error and returns exit code 2.
int RunCommandLine(CommandLine& program, int argc, char** argv);

// Returns the exit code of a command that has written its answer to standard
// output; the answer may have been lost, for example on a full disk.
// RunCommandLine calls it for commands that write nothing else.
int FinishAnswer();

}  // namespace tributary
