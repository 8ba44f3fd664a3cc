// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal/command_line.h"

namespace tributary {

// Adds the options and the action of tributary-coordinator.
void AddCoordinateOptions(CommandLine& command);

}  // namespace tributary
