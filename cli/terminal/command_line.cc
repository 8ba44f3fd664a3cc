// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/command_line.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/command_line/parse_command_line.h"
#include "common/files/file_status.h"
#include "common/host/process_limits.h"
#include "common/job/yaml/job_keys.h"

namespace tributary {
namespace {

constexpr char kOverrideType[] = "KEY=VALUE";

// Whether a command leaves nothing but its output. Commands that run jobs leave
// files, and their output only shows the progress.
bool IsAnswer(absl::string_view command) {
  return command != "train" && command != "run" && command != "compare";
}

}  // namespace

int FinishAnswer() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return kExitDone;
  PrintError(FileError("standard output", "write", errno).message());
  return kExitFailed;
}

std::vector<std::string> CommandJob::Overrides() const {
  std::vector<std::string> all = overrides;
  if (!device.empty()) all.push_back("device=" + device);
  return all;
}

void AddJobPath(CommandLine& command, CommandJob* job) {
  command.AddOption("JOB", &job->path, "the job file (YAML)");
}

void AddJobChanges(CommandLine& command, CommandJob* job) {
  AddOverrides(command, &job->overrides);
  command
      .AddOption("--device", &job->device,
                 "auto, cpu or cuda, instead of the job's device")
      .OneOf({"auto", "cpu", "cuda"});
}

void AddOverrides(CommandLine& command, std::vector<std::string>* overrides) {
  command
      .AddOption("--set", overrides,
                 "change a field of the job file, as in\n"
                 "--set training.epochs=2; may be repeated")
      .TypeName(kOverrideType)
      .OnePerFlag();
}

int RunCommandLine(CommandLine& program, int argc, char** argv) {
  PrepareProcessLimits();
  const ValueSources sources = {{kOverrideType, JobKeys}};
  // `tributary help train` is `tributary train --help`. `tributary` alone shows
  // the help, too.
  std::string help = "--help";
  std::vector<char*> words(argv, argv + argc);
  const bool asks = argc > 1 && words[1] == absl::string_view("help");
  if (asks) words.erase(words.begin() + 1);
  // An unknown command is reported as an error.
  const CommandDescription page = program.Describe();
  const bool known =
      words.size() < 2 ||
      absl::c_any_of(page.commands, [&](const CommandDescription& command) {
        return command.name == words[1];
      });
  const bool lost = argc == 1 && !page.commands.empty();
  if ((asks && known) || lost) words.push_back(help.data());
  if (const auto ended = ParseCommandLine(
          program, static_cast<int>(words.size()), words.data(), sources)) {
    return lost ? kExitRefused : *ended;
  }
  if (!program.action()) {
    PrintError(
        absl::StrCat("give a command (try ", program.ParsedName(), " --help)"));
    return kExitRefused;
  }
  const int code = program.action()();
  const bool answers = !page.commands.empty() && IsAnswer(words[1]);
  return code == kExitDone && answers ? FinishAnswer() : code;
}

}  // namespace tributary
