// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <sstream>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace tributary {
namespace {

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// CLI11 prints the text of this error and ends the program with 0, before it
// asks for options that are required.
[[noreturn]] void PrintAndEnd(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  throw CLI::CallForVersion(text, 0);
}

OptionDescription DescribeOption(const CLI::Option& option) {
  OptionDescription description;
  description.short_names = option.get_snames();
  description.long_names = option.get_lnames();
  description.positional = option.get_name(/*positional=*/true);
  description.type_name = option.get_type_name();
  description.description = option.get_description();
  description.default_text = option.get_default_str();
  description.required = option.get_required();
  description.hidden = option.get_group().empty();
  description.takes_value = option.get_items_expected_max() > 0;
  return description;
}

CommandDescription DescribeCommand(const CLI::App& app) {
  CommandDescription description;
  description.name = app.get_name();
  description.description = app.get_description();
  // CLI11 gives a new command the footer that its parent has.
  const CLI::App* parent = app.get_parent();
  if (parent == nullptr || app.get_footer() != parent->get_footer()) {
    description.footer = app.get_footer();
  }
  description.starts_program = app.get_prefix_command();
  for (const CLI::Option* option : app.get_options()) {
    description.options.push_back(DescribeOption(*option));
  }
  for (const CLI::App* command : CommandsOf(app)) {
    description.commands.push_back(DescribeCommand(*command));
  }
  return description;
}

std::string ParsedNameOf(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) {
    absl::StrAppend(&name, " ", ParsedNameOf(*command));
  }
  return name;
}

// The first word of the command line that nothing takes.
std::string FirstUnexpected(const CLI::App& app, int argc,
                            const char* const* argv) {
  const std::vector<std::string> left = app.remaining(/*recurse=*/true);
  for (int i = 1; i < argc; ++i) {
    if (std::find(left.begin(), left.end(), argv[i]) != left.end()) {
      return argv[i];
    }
  }
  return left.empty() ? "" : left.front();
}

// The words of the command's options, except those of the options in `but`.
// Taken from the command line, because CLI11 keeps only parsed values.
std::vector<std::string> OptionWords(const CLI::App& app,
                                     const std::vector<std::string>& line,
                                     const std::vector<std::string>& but) {
  std::vector<std::string> words;
  auto word = std::find(line.begin(), line.end(), app.get_name());
  for (; word != line.end(); ++word) {
    const std::string name = word->substr(0, word->find('='));
    const CLI::Option* const option =
        absl::StartsWith(name, "--") ? app.get_option_no_throw(name) : nullptr;
    if (option == nullptr) {
      // The words after a program's name belong to that program.
      if (app.get_prefix_command() && *word != app.get_name()) break;
      continue;
    }
    const bool takes_next = option->get_items_expected_max() > 0 &&
                            name.size() == word->size() &&
                            std::next(word) != line.end();
    if (std::find(but.begin(), but.end(), name) == but.end()) {
      words.push_back(*word);
      if (takes_next) words.push_back(*std::next(word));
    }
    if (takes_next) ++word;
  }
  return words;
}

// The first "--name=", for which CLI11 would take the next word as the value.
std::string FirstEmptyValue(const CLI::App& app, int argc,
                            const char* const* argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string word = argv[i];
    if (word.size() < 4 || word.substr(0, 2) != "--" || word.back() != '=') {
      continue;
    }
    const std::string name = word.substr(0, word.size() - 1);
    for (const CLI::App* command = &app; command != nullptr;) {
      const CLI::Option* const option = command->get_option_no_throw(name);
      if (option != nullptr) {
        const std::vector<std::string>& values = option->results();
        if (std::find(values.begin(), values.end(), argv[i + 1]) !=
            values.end()) {
          return word;
        }
      }
      const std::vector<CLI::App*> chosen = command->get_subcommands();
      command = chosen.empty() ? nullptr : chosen.back();
    }
  }
  return "";
}

ParseResult EmptyValueError(const CLI::App& app, int argc,
                            const char* const* argv) {
  const std::string empty = FirstEmptyValue(app, argc, argv);
  if (empty.empty()) return {};
  return {ParseResult::Kind::kWrong,
          absl::StrCat(empty, " wants a value, got none")};
}

// Says which option is given more often than it may be, and how often; empty if
// no option is.
std::string FirstRepeated(const CLI::App& app) {
  for (const CLI::App* command = &app; command != nullptr;) {
    for (const CLI::Option* option : command->get_options()) {
      const size_t given = option->results().size();
      if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw &&
          option->get_items_expected_max() == 1 && given > 1) {
        return absl::StrCat(option->get_name(), " is given ", given,
                            " times, and may be given once");
      }
    }
    const std::vector<CLI::App*> chosen = command->get_subcommands();
    command = chosen.empty() ? nullptr : chosen.back();
  }
  return "";
}

std::string TextOf(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (std::string text = FirstRepeated(app); !text.empty()) return text;
  }
  return absl::StrReplaceAll(error.what(), {{"\n", " "}});
}

}  // namespace

struct CommandLine::Program {
  Program(const std::string& description, const std::string& name)
      : app(description, name) {}

  CLI::App app;
  std::string version;
  Action action;                   // of the command that was read
  std::vector<std::string> words;  // of the command line
};

CommandLine::CommandLine(const std::string& description,
                         const std::string& name, const std::string& version)
    : program_(std::make_shared<Program>(description, name)),
      app_(&program_->app) {
  program_->version = version;
  if (!version.empty()) app_->set_version_flag("--version", version);
}

CommandLine CommandLine::AddCommand(const std::string& name,
                                    const std::string& description) {
  return CommandLine(program_, app_->add_subcommand(name, description));
}

void CommandLine::SetFooter(const std::string& footer) { app_->footer(footer); }

Option CommandLine::AddOption(const std::string& names, OptionValue value,
                              const std::string& description) {
  return std::visit(
      [&](auto* variable) {
        Option option(app_->add_option(names, *variable, description));
        using Type = std::remove_pointer_t<decltype(variable)>;
        if constexpr (std::is_same_v<Type, std::string> ||
                      std::is_same_v<Type, std::vector<std::string>>) {
          option.RefuseEmpty();
        }
        return option;
      },
      value);
}

Option CommandLine::AddFlag(const std::string& names, bool* value,
                            const std::string& description) {
  return Option(app_->add_flag(names, *value, description));
}

Option CommandLine::AddNumberedChoice(const std::string& names,
                                      const std::map<std::string, int>& choices,
                                      std::function<void(int)> choose,
                                      const std::string& description) {
  const std::string list =
      absl::StrJoin(choices, "|", [](std::string* text, const auto& choice) {
        absl::StrAppend(text, choice.first);
      });
  return Option(
      app_->add_option_function<int>(names, std::move(choose), description)
          ->transform(CLI::CheckedTransformer(choices, CLI::ignore_case)
                          .description(""))
          ->type_name(list));
}

Option CommandLine::AddOptionalValue(
    const std::string& names,
    std::function<std::string(const std::string&)> read,
    const std::string& description) {
  const CLI::callback_t callback =
      [names, read = std::move(read)](const CLI::results_t& results) {
        const std::string text = results.empty() ? "" : results.back();
        // CLI11 passes "true" where no value is given.
        const std::string error = read(text == "true" ? "" : text);
        if (!error.empty()) throw CLI::ValidationError(names, error);
        return true;
      };
  return Option(app_->add_option(names, callback, description)->expected(0, 1));
}

Option CommandLine::AddTextOption(
    const std::string& names,
    std::function<std::string(const std::string&)> text,
    const std::string& description) {
  return Option(app_->add_option_function<std::string>(
      names,
      [text = std::move(text)](const std::string& value) {
        PrintAndEnd(text(value));
      },
      description));
}

void CommandLine::AddTextFlag(const std::string& names,
                              std::function<std::string()> text,
                              const std::string& description) {
  app_->add_flag_callback(
      names, [text = std::move(text)] { PrintAndEnd(text()); }, description);
}

bool CommandLine::HasOption(const std::string& name) const {
  return app_->get_option_no_throw(name) != nullptr;
}

void CommandLine::SetAction(Action action) {
  app_->callback([program = program_.get(), action = std::move(action)] {
    program->action = action;
  });
}

void CommandLine::SetProgramAction(
    std::function<int(const std::vector<std::string>& words)> action) {
  app_->prefix_command();
  app_->callback(
      [program = program_.get(), app = app_, action = std::move(action)] {
        program->action = [action, words = app->remaining()] {
          return action(words);
        };
      });
}

void CommandLine::SetFinalCheck(std::function<std::string()> check) {
  app_->final_callback([check = std::move(check)] {
    const std::string error = check();
    if (!error.empty()) throw CLI::ValidationError(error);
  });
}

ParseResult CommandLine::Parse(int argc, const char* const* argv) {
  app_->require_subcommand(0, 1);
  try {
    program_->words.assign(argv + 1, argv + argc);
    app_->parse(argc, argv);
    return EmptyValueError(*app_, argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help
      std::ostringstream page;
      app_->exit(error, page);
      return {ParseResult::Kind::kPage, page.str()};
    }
    if (const ParseResult empty = EmptyValueError(*app_, argc, argv);
        empty.kind == ParseResult::Kind::kWrong) {
      return empty;
    }
    if (error.get_exit_code() ==
        static_cast<int>(CLI::ExitCodes::ExtrasError)) {
      return {ParseResult::Kind::kUnexpected,
              FirstUnexpected(*app_, argc, argv)};
    }
    return {ParseResult::Kind::kWrong, TextOf(*app_, error)};
  }
}

GivenWords CommandLine::given_words() const {
  return [program = program_.get(),
          app = app_](const std::vector<std::string>& but) {
    return OptionWords(*app, program->words, but);
  };
}

CommandLine CommandLine::Parsed() const {
  CLI::App* command = app_;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().back();
  }
  return CommandLine(program_, command);
}

std::string CommandLine::ParsedName() const { return ParsedNameOf(*app_); }

const Action& CommandLine::action() const { return program_->action; }

std::string CommandLine::name() const { return app_->get_name(); }

const std::string& CommandLine::version() const { return program_->version; }

CommandDescription CommandLine::Describe() const {
  return DescribeCommand(*app_);
}

}  // namespace tributary
