// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/complete.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace tributary {
namespace {

// The meaning of the words before the last one.
struct Place {
  const CommandDescription* command;
  const OptionDescription* option = nullptr;  // waits for its value
  size_t positionals = 0;                     // given to this command so far
  bool options_ended = false;                 // by "--", or by a program's name
};

bool IsOptionWord(const std::string& word) {
  return word.size() > 1 && word[0] == '-';
}

const CommandDescription* FindCommand(const CommandDescription& parent,
                                      const std::string& name) {
  for (const CommandDescription& command : parent.commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

// The option that the word names: "-c" or "--color".
const OptionDescription* FindOption(const CommandDescription& command,
                                    const std::string& word) {
  for (const OptionDescription& option : command.options) {
    for (const std::string& name : option.short_names) {
      if (word == absl::StrCat("-", name)) return &option;
    }
    for (const std::string& name : option.long_names) {
      if (word == absl::StrCat("--", name)) return &option;
    }
  }
  return nullptr;
}

void Follow(const std::string& word, Place* place) {
  if (place->option != nullptr) {
    place->option = nullptr;  // the word is its value
  } else if (place->options_ended) {
    ++place->positionals;
  } else if (word == "--") {
    place->options_ended = true;
  } else if (IsOptionWord(word)) {
    const OptionDescription* option = FindOption(*place->command, word);
    if (option != nullptr && option->takes_value) place->option = option;
  } else if (const CommandDescription* command =
                 FindCommand(*place->command, word)) {
    *place = {.command = command};
  } else {
    ++place->positionals;
    place->options_ended = place->command->starts_program;
  }
}

// The option's values, each after `prefix`.
std::vector<Completion> Values(const OptionDescription& option,
                               const std::string& begun,
                               const std::string& prefix,
                               const ValueSources& sources) {
  const std::string& type = option.type_name;
  const auto source = sources.find(type);
  std::vector<Completion> found;
  for (const std::string& value :
       source == sources.end() ? ListedValues(type) : source->second(begun)) {
    if (absl::StartsWith(value, begun)) {
      found.push_back({.word = prefix + value});
    }
  }
  return found;
}

std::vector<Completion> OptionsOf(const CommandDescription& command,
                                  const std::string& begun) {
  std::vector<Completion> found;
  for (const OptionDescription& option : command.options) {
    if (!option.positional.empty() || option.hidden) continue;
    const std::string name = LongName(option);
    if (absl::StartsWith(name, begun)) {
      found.push_back({name, OneLine(option.description)});
    }
  }
  return found;
}

std::vector<Completion> CommandsOf(const CommandDescription& parent,
                                   const std::string& begun) {
  std::vector<Completion> found;
  for (const CommandDescription& command : parent.commands) {
    if (absl::StartsWith(command.name, begun)) {
      found.push_back({command.name, OneLine(command.description)});
    }
  }
  return found;
}

const OptionDescription* PositionalOf(const Place& place) {
  size_t number = 0;
  for (const OptionDescription& option : place.command->options) {
    if (!option.positional.empty() && number++ == place.positionals) {
      return &option;
    }
  }
  return nullptr;
}

}  // namespace

std::string OneLine(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\n", " "}});
}

std::string LongName(const OptionDescription& option) {
  return option.long_names.empty()
             ? absl::StrCat("-", option.short_names.front())
             : absl::StrCat("--", option.long_names.front());
}

std::vector<std::string> ListedValues(const std::string& type_name) {
  const size_t open = type_name.find('{');
  const bool braces = open != std::string::npos && type_name.back() == '}';
  if (!braces && !absl::StrContains(type_name, "|")) return {};
  const std::string list =
      braces ? type_name.substr(open + 1, type_name.size() - open - 2)
             : type_name;
  const std::vector<std::string> values =
      absl::StrSplit(list, absl::ByChar(braces ? ',' : '|'));
  const bool names =
      std::all_of(values.begin(), values.end(), [](const std::string& value) {
        return !value.empty() &&
               std::all_of(value.begin(), value.end(), [](char letter) {
                 return absl::ascii_isalnum(letter) || letter == '_' ||
                        letter == '-';
               });
      });
  return names ? values : std::vector<std::string>();
}

std::vector<Completion> Complete(const CommandDescription& program,
                                 const std::vector<std::string>& words,
                                 const ValueSources& sources) {
  if (words.empty()) return CommandsOf(program, "");
  Place place{.command = &program};
  for (size_t i = 0; i + 1 < words.size(); ++i) Follow(words[i], &place);
  const std::string& last = words.back();
  if (place.option != nullptr) return Values(*place.option, last, "", sources);
  if (!place.options_ended && absl::StartsWith(last, "-")) {
    const size_t equals = last.find('=');
    if (equals == std::string::npos) return OptionsOf(*place.command, last);
    const OptionDescription* option =
        FindOption(*place.command, last.substr(0, equals));
    if (option == nullptr) return {};
    return Values(*option, last.substr(equals + 1), last.substr(0, equals + 1),
                  sources);
  }
  if (place.positionals == 0 && !place.options_ended) {
    std::vector<Completion> commands = CommandsOf(*place.command, last);
    if (!commands.empty()) return commands;
  }
  const OptionDescription* positional = PositionalOf(place);
  if (positional == nullptr) return {};
  return Values(*positional, last, "", sources);
}

}  // namespace tributary
