// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/command_line/command_description.h"

namespace tributary {

// A word that may stand at the end of the command line.
struct Completion {
  std::string word;
  std::string description;  // one line; may be empty
};

// The values of an option that begin with `begun`.
using ValueSource =
    std::function<std::vector<std::string>(const std::string& begun)>;

// Sources by the type name of their options, as --help shows it: "KEY=VALUE".
using ValueSources = std::map<std::string, ValueSource>;

// Returns the words that can complete a command line. `words` follow the
// program's name; the last one is incomplete and may be empty. Knows commands,
// options, and the values of options that have a list of them or a source.
// Returns nothing where a file name or any other value is wanted.
std::vector<Completion> Complete(const CommandDescription& program,
                                 const std::vector<std::string>& words,
                                 const ValueSources& sources);

// The values that the type name of an option lists: {auto, cpu} of
// "TEXT:{auto,cpu}" and of "auto|cpu". Empty if it lists none.
std::vector<std::string> ListedValues(const std::string& type_name);

// The long name of an option, such as "--run-dir", or a short name, such as
// "-h", if it has no long one.
std::string LongName(const OptionDescription& option);

// Returns a text of the command line's definition as one line.
std::string OneLine(const std::string& text);

}  // namespace tributary
