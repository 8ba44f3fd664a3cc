// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

// Only option.cc and command_line.cc include CLI11, because it takes seconds to
// compile.
namespace CLI {  // NOLINT(readability-identifier-naming)
class Option;
}  // namespace CLI

namespace tributary {

// An option or a positional argument of a command. A handle: copies mean the
// same option. Each function changes the option and returns it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& Required();
  Option& Hidden();  // --help does not show it
  // The kind of value, as --help shows it: "FILE".
  Option& TypeName(const std::string& name);
  // --help shows the value that the variable has now.
  Option& ShowDefault();
  Option& FromEnvironment(const std::string& variable);

  // How many values follow the option.
  Option& Count(int values);
  // One word holds several values, with this character between them.
  Option& Separator(char separator);
  // Each --option takes one word; more values need the option again.
  Option& OnePerFlag();

  // Takes the empty text as a value. Without this call text may not be empty:
  // otherwise an empty variable of a script would count as an option not given.
  Option& MayBeEmpty();
  void RefuseEmpty();

  // Limits of a value. --help shows them after the type.
  Option& Range(int first, int last);
  Option& Range(double first, double last);
  Option& Positive();
  Option& NonNegative();
  Option& ExistingFolder();
  Option& OneOf(const std::vector<std::string>& values);
  // As OneOf, but the values take the place of the type: "text|json".
  Option& TypeOneOf(const std::vector<std::string>& values);
  // A value for which `wants` is true is an error without the option `other`.
  Option& Needs(const Option& other);
  Option& Needs(const Option& other,
                std::function<bool(const std::string& value)> wants);

 private:
  CLI::Option* option_;
};

}  // namespace tributary
