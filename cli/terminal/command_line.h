#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tributary {

// What the command line asks for; returns the exit code.
using Action = std::function<int()>;

void AddTrainCommand(CLI::App& app, Action* action);
void AddStatusCommand(CLI::App& app, Action* action);
void AddCheckpointCommand(CLI::App& app, Action* action);
void AddCompareCommand(CLI::App& app, Action* action);
void AddExportCommand(CLI::App& app, Action* action);
void AddPlanCommand(CLI::App& app, Action* action);

// --set key=value, any number of times.
void AddOverrides(CLI::App& app, std::vector<std::string>* overrides);

// Parses, then runs the action. A wrong command line gets one line on standard
// error and exit code 2.
int RunCommandLine(CLI::App& app, int argc, char** argv, const Action& action);

}  // namespace tributary
