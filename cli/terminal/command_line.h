// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tributary {

// The action that the command line selects; returns the exit code.
using Action = std::function<int()>;

void AddTrainCommand(CLI::App& app, Action* action);
void AddRunCommand(CLI::App& app, Action* action);
void AddCertificatesCommand(CLI::App& app, Action* action);
void AddStatusCommand(CLI::App& app, Action* action);
void AddWhyCommand(CLI::App& app, Action* action);
void AddLogsCommand(CLI::App& app, Action* action);
void AddStopCommand(CLI::App& app, Action* action);
void AddListCommand(CLI::App& app, Action* action);
void AddCheckpointCommand(CLI::App& app, Action* action);
void AddCompareCommand(CLI::App& app, Action* action);
void AddExportCommand(CLI::App& app, Action* action);
void AddPlanCommand(CLI::App& app, Action* action);
void AddTraceCommand(CLI::App& app, Action* action);
void AddPredictCommand(CLI::App& app, Action* action);
void AddEvaluateCommand(CLI::App& app, Action* action);
void AddReplayCommand(CLI::App& app, Action* action);
void AddBisectCommand(CLI::App& app, Action* action);
void AddSchemaCommand(CLI::App& app, Action* action);

// --set key=value, may be repeated.
void AddOverrides(CLI::App& app, std::vector<std::string>* overrides);

// Parses the command line and runs the action. A wrong command line prints one
// line on standard error and returns exit code 2.
int RunCommandLine(CLI::App& app, int argc, char** argv, const Action& action);

}  // namespace tributary
