// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/command_line/command_description.h"
#include "common/command_line/option.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}  // namespace CLI

namespace tributary {

// An action that the command line selects; returns the exit code.
using Action = std::function<int()>;

// The variable that gets the value of an option. It must live until the command
// line has been parsed.
using OptionValue =
    std::variant<std::string*, int*, int64_t*, uint64_t*, double*,
                 std::optional<uint32_t>*, std::optional<uint64_t>*,
                 std::vector<std::string>*, std::vector<int>*,
                 std::vector<int64_t>*, std::vector<uint64_t>*>;

// The words of a command's options as they were given, without those of the
// options `but` and without positional arguments.
using GivenWords = std::function<std::vector<std::string>(
    const std::vector<std::string>& but)>;

// The result of Parse.
struct ParseResult {
  enum class Kind {
    kRead,        // the program goes on
    kPage,        // `text` is to be printed, as for --help
    kUnexpected,  // no option or argument takes `text`
    kWrong,       // `text` says what is wrong
  };
  Kind kind = Kind::kRead;
  std::string text;
};

// The command line of a program, or one of its commands. A handle: copies mean
// the same program or command. Names are "NAME" of a positional argument, or
// "--long,-s" of an option.
class CommandLine {
 public:
  // `version`: what --version prints; empty: there is no --version.
  CommandLine(const std::string& description, const std::string& name,
              const std::string& version = "");

  CommandLine AddCommand(const std::string& name,
                         const std::string& description);
  // The text at the end of --help.
  void SetFooter(const std::string& footer);

  Option AddOption(const std::string& names, OptionValue value,
                   const std::string& description = "");
  Option AddFlag(const std::string& names, bool* value,
                 const std::string& description = "");
  // An option whose value is one of the names; --help lists them.
  template <typename Enum>
  Option AddChoice(const std::string& names, Enum* value,
                   const std::map<std::string, Enum>& choices,
                   const std::string& description) {
    std::map<std::string, int> numbers;
    for (const auto& [name, choice] : choices) {
      numbers[name] = static_cast<int>(choice);
    }
    return AddNumberedChoice(
        names, numbers,
        [value](int number) { *value = static_cast<Enum>(number); },
        description);
  }
  // An option that may be given without a value. `read` gets the value, or ""
  // for none, and returns what is wrong with it, or "" if nothing is.
  Option AddOptionalValue(const std::string& names,
                          std::function<std::string(const std::string&)> read,
                          const std::string& description);
  // An option, or a flag, that prints the text and ends the program with 0 even
  // where other options are missing.
  Option AddTextOption(const std::string& names,
                       std::function<std::string(const std::string&)> text,
                       const std::string& description);
  void AddTextFlag(const std::string& names, std::function<std::string()> text,
                   const std::string& description);
  bool HasOption(const std::string& name) const;

  // The action runs when this command is given.
  void SetAction(Action action);
  // The first positional argument is a program: `action` gets it and all words
  // after it.
  void SetProgramAction(
      std::function<int(const std::vector<std::string>& words)> action);
  // `check` runs once all options have been read; it returns what is wrong, or
  // "" if nothing is. For a program without an action.
  void SetFinalCheck(std::function<std::string()> check);

  // Returns a function that gives this command's words after Parse. It stays
  // valid as long as the program, and is for use in an action, which must not
  // hold a handle.
  GivenWords given_words() const;

  // Reads the command line of a program. A word after a command is an argument,
  // even if it is a command's name.
  ParseResult Parse(int argc, const char* const* argv);
  // The command or program that Parse read last, and its full name, such as
  // "tributary checkpoint list".
  CommandLine Parsed() const;
  std::string ParsedName() const;
  // The action of the command that Parse read; null: it has none.
  const Action& action() const;

  std::string name() const;
  // The text of --version.
  const std::string& version() const;
  CommandDescription Describe() const;

 private:
  struct Program;  // what a program shares with its commands

  CommandLine(std::shared_ptr<Program> program, CLI::App* app)
      : program_(std::move(program)), app_(app) {}

  Option AddNumberedChoice(const std::string& names,
                           const std::map<std::string, int>& choices,
                           std::function<void(int)> choose,
                           const std::string& description);

  std::shared_ptr<Program> program_;
  CLI::App* app_;  // owned by the program
};

}  // namespace tributary
