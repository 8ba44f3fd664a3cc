#pragma once

#include "cli/terminal/command_line.h"

namespace tributary {

// What tributary-coordinator does.
void AddCoordinateOptions(CLI::App& app, Action* action);

}  // namespace tributary
