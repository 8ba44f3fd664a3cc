// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/parse_command_line.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <regex>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/command_line/completion_script.h"
#include "common/command_line/man_page.h"
#include "common/status/nearest_name.h"
#include "common/status/printable.h"
#include "common/status/quoted.h"

namespace tributary {
namespace {

// The innermost command that was being parsed.
const CLI::App& CommandOf(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().back();
  }
  return *command;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back(absl::StrCat("--", name));
    }
  }
  return names;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
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

std::string UnexpectedText(const CLI::App& app, const std::string& word) {
  std::string text;
  std::string nearest;
  if (absl::StartsWith(word, "-")) {
    const std::string name = word.substr(0, word.find('='));
    text = absl::StrCat("there is no option ", name);
    nearest = NearestName(name, OptionNames(app));
  } else if (const auto names = CommandNames(app); !names.empty()) {
    text = absl::StrCat("there is no command ", Quoted(word));
    nearest = NearestName(word, names);
  } else {
    text = absl::StrCat("the argument ", Quoted(word), " is one too many");
  }
  if (!nearest.empty()) absl::StrAppend(&text, "; did you mean ", nearest, "?");
  return text;
}

// The day of a manual page: today, or that of the package that is built
// (reproducible-builds.org/specs/source-date-epoch).
std::string PageDate() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  const int64_t seconds =
      epoch == nullptr ? std::time(nullptr) : std::atoll(epoch);
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixSeconds(seconds),
                          absl::UTCTimeZone());
}

// CLI11 prints the text of this error and ends the program with 0, before it
// asks for options that are required.
[[noreturn]] void PrintAndEnd(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  throw CLI::CallForVersion(text, 0);
}

void AddInstallOptions(CLI::App& app) {
  if (app.get_option_no_throw("--man-page") != nullptr) return;
  const std::vector<std::string> shells(std::begin(kShells), std::end(kShells));
  app.add_option_function<std::string>(
         "--completion",
         [&app](const std::string& shell) {
           PrintAndEnd(CompletionScript(shell, app.get_name()));
         },
         "print a script that completes this command's words in a shell")
      ->type_name(absl::StrJoin(shells, "|"))
      ->check(CLI::IsMember(shells).description(""));
  app.add_flag_callback(
      "--man-page",
      [&app] {
        PrintAndEnd(ManPage(DescribeCommand(app), app.version(), PageDate()));
      },
      "print this command's manual page");
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

// CLI11's "Value two not in range 1 to 8", in our words.
std::string RangeText(const std::string& text) {
  static const std::regex cli11("(.*): Value (.*) not in range (\\S+ to \\S+)");
  return std::regex_replace(text, cli11,
                            "$1 wants a number from $3, got \"$2\"");
}

}  // namespace

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
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    description.commands.push_back(DescribeCommand(*command));
  }
  return description;
}

std::string CommandName(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) {
    absl::StrAppend(&name, " ", CommandName(*command));
  }
  return name;
}

std::string CommandLineError(const CLI::App& app, const CLI::ParseError& error,
                             int argc, const char* const* argv) {
  std::string text =
      RangeText(absl::StrReplaceAll(error.what(), {{"\n", " "}}));
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    text = UnexpectedText(CommandOf(app), FirstUnexpected(app, argc, argv));
  }
  return absl::StrCat(text, " (try ", CommandName(app), " --help)");
}

std::optional<int> ParseCommandLine(CLI::App& app, int argc, char** argv,
                                    const ValueSources& sources) {
  // Our own error messages already contain what gRPC would log.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  AddInstallOptions(app);
  if (argc > 1 && absl::string_view(argv[1]) == kCompleteWord) {
    const std::vector<std::string> words(argv + 2, argv + argc);
    std::fputs(
        CompletionLines(Complete(DescribeCommand(app), words, sources)).c_str(),
        stdout);
    return 0;
  }
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(),
                 Printable(CommandLineError(app, error, argc, argv)).c_str());
    return kExitWrongCommandLine;
  }
}

}  // namespace tributary
