// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tributary {

// An option or a positional argument of a command, as its texts show it.
struct OptionDescription {
  std::vector<std::string> short_names;  // without dashes
  std::vector<std::string> long_names;
  std::string positional;    // the argument's name; empty: an option
  std::string type_name;     // "KEY=VALUE", "TEXT:{auto,cpu}"
  std::string description;   // may have several lines
  std::string default_text;  // empty: --help shows none
  bool required = false;
  bool hidden = false;
  bool takes_value = false;  // a value follows the option
};

// A program or one of its commands: the data from which completions and the
// manual page are made.
struct CommandDescription {
  std::string name;
  std::string description;
  std::string footer;  // empty: no footer of its own
  // True if the first positional argument is a program: all words after it are
  // the program's own.
  bool starts_program = false;
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> commands;
};

}  // namespace tributary
