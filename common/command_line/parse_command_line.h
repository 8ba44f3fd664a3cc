// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>

#include "common/command_line/command_description.h"
#include "common/command_line/complete.h"

namespace tributary {

// The exit code of a program whose command line is wrong.
inline constexpr int kExitWrongCommandLine = 2;

// Parses the command line of a program. Nothing: the program goes on. Otherwise
// it ends with this exit code: 0 after --help or --version, and 2 after one
// line on standard error that names what is wrong, the nearest name, and the
// command that helps. Gives the program the options --completion, whose script
// completes values from `sources`, and --man-page.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, char** argv,
                                    const ValueSources& sources = {});

// The definition of a program or a command as plain data.
CommandDescription DescribeCommand(const CLI::App& app);

// The full name of the command that was parsed: "tributary checkpoint list".
std::string CommandName(const CLI::App& app);

// The line that ParseCommandLine writes, without the program's name.
std::string CommandLineError(const CLI::App& app, const CLI::ParseError& error,
                             int argc, const char* const* argv);

// An option whose value is one of the names; --help lists them.
template <typename Enum>
CLI::Option* AddChoice(CLI::App& app, const std::string& name, Enum* value,
                       const std::map<std::string, Enum>& names,
                       const std::string& description) {
  std::string list;
  for (const auto& [choice, unused] : names) {
    list += (list.empty() ? "" : "|") + choice;
  }
  return app.add_option(name, *value, description)
      ->transform(
          CLI::CheckedTransformer(names, CLI::ignore_case).description(""))
      ->type_name(list);
}

}  // namespace tributary
