// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/parse_command_line.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
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

std::vector<std::string> OptionNames(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const OptionDescription& option : command.options) {
    for (const std::string& name : option.long_names) {
      names.push_back(absl::StrCat("--", name));
    }
  }
  return names;
}

std::vector<std::string> CommandNames(const CommandDescription& parent) {
  std::vector<std::string> names;
  for (const CommandDescription& command : parent.commands) {
    names.push_back(command.name);
  }
  return names;
}

std::string UnexpectedText(const CommandDescription& command,
                           const std::string& word) {
  std::string text;
  std::string nearest;
  if (absl::StartsWith(word, "-")) {
    const std::string name = word.substr(0, word.find('='));
    text = absl::StrCat("there is no option ", name);
    nearest = NearestName(name, OptionNames(command));
  } else if (const auto names = CommandNames(command); !names.empty()) {
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

void AddInstallOptions(CommandLine& program) {
  if (program.HasOption("--man-page")) return;
  const std::vector<std::string> shells(std::begin(kShells), std::end(kShells));
  program
      .AddTextOption(
          "--completion",
          [&program](const std::string& shell) {
            return CompletionScript(shell, program.name());
          },
          "print a script that completes this command's words in a shell")
      .TypeOneOf(shells);
  program.AddTextFlag(
      "--man-page",
      [&program] {
        return ManPage(program.Describe(), program.version(), PageDate());
      },
      "print this command's manual page");
}

}  // namespace

std::string CommandLineError(const CommandLine& program,
                             const ParseResult& result) {
  const std::string text =
      result.kind == ParseResult::Kind::kUnexpected
          ? UnexpectedText(program.Parsed().Describe(), result.text)
          : result.text;
  return absl::StrCat(text, " (try ", program.ParsedName(), " --help)");
}

std::optional<int> ParseCommandLine(CommandLine& program, int argc, char** argv,
                                    const ValueSources& sources) {
  // Our own error messages already contain what gRPC would log.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  AddInstallOptions(program);
  if (argc > 1 && absl::string_view(argv[1]) == kCompleteWord) {
    const std::vector<std::string> words(argv + 2, argv + argc);
    const auto completions = Complete(program.Describe(), words, sources);
    std::fputs(CompletionLines(completions).c_str(), stdout);
    return 0;
  }
  const ParseResult result = program.Parse(argc, argv);
  if (result.kind == ParseResult::Kind::kRead) return std::nullopt;
  if (result.kind == ParseResult::Kind::kPage) {
    std::fputs(result.text.c_str(), stdout);
    return 0;
  }
  std::fprintf(stderr, "%s: %s\n", program.name().c_str(),
               Printable(CommandLineError(program, result)).c_str());
  return kExitWrongCommandLine;
}

}  // namespace tributary
