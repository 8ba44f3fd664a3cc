// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "common/command_line/command_line.h"
#include "common/command_line/complete.h"

namespace tributary {

// The exit code of a program whose command line is wrong.
inline constexpr int kExitWrongCommandLine = 2;

// Parses the command line of a program. Returns nothing if the program goes on,
// otherwise its exit code: 0 after --help or --version, and 2 after one line on
// standard error that names what is wrong, the nearest name, and the command
// that helps. Adds the options --completion, whose script completes values from
// `sources`, and --man-page to the program. `program` must live until this
// returns.
std::optional<int> ParseCommandLine(CommandLine& program, int argc, char** argv,
                                    const ValueSources& sources = {});

// The line that ParseCommandLine writes, without the program's name. `result`:
// kUnexpected or kWrong, of this program.
std::string CommandLineError(const CommandLine& program,
                             const ParseResult& result);

}  // namespace tributary
