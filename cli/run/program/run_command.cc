// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/run/job/job_run_options.h"
#include "cli/run/processes/find_program.h"
#include "cli/run/processes/hosts.h"
#include "cli/run/program/program_run.h"
#include "cli/run/resume.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/command_line/access_flags.h"
#include "common/command_line/telemetry_options.h"
#include "common/host/small_file.h"
#include "common/job/job_file.h"
#include "common/job/program/program_job.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kRunDescription[] =
    "Runs a program of your own as the workers of a job:\n"
    "tributary run [OPTIONS] PROGRAM [ARGUMENTS...]";
constexpr char kRunFooter[] =
    "PROGRAM and what follows it are started once for each worker; a name "
    "that\n"
    "ends in .py is started by Python. Each process gets "
    "TRIBUTARY_COORDINATOR,\n"
    "TRIBUTARY_RANK and TRIBUTARY_WORLD_SIZE, and RANK, WORLD_SIZE, "
    "LOCAL_RANK.\n"
    "The output of rank 0 is shown; all output is in logs/ of the run "
    "directory.\n"
    "Ctrl-C stops at the next common step and saves the weights; a second one\n"
    "ends everything at once.\n\n"
    "Examples:\n"
    "  tributary run --servers 2 --workers 4 train.py --epochs 3\n"
    "  tributary run --workers 2 --job job.yaml ./train   # fields in a file\n"
    "  tributary run --servers 2 --workers 4 --once \\\n"
    "      torchrun --nproc-per-node 4 train.py   # starts the ranks itself\n\n"
    "Exit codes: 0 done, 1 the run failed, 2 command line or job are wrong,\n"
    "130 interrupted.";

constexpr char kPython[] = "python3";

struct RunOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  int servers = 0;  // 0: as in the job file, or as the program says
  int workers = 0;
  std::string python = kPython;
  std::string resume;
  std::string checkpoint_key_file;
  ProgramRunOptions run;
};

// Makes the command that starts the program from these words.
absl::StatusOr<std::vector<std::string>> CommandOf(
    std::vector<std::string> words, const std::string& python) {
  if (!words.empty() && words[0] == "--") words.erase(words.begin());
  if (words.empty()) {
    return absl::InvalidArgumentError(
        "a PROGRAM is wanted (try tributary run --help)");
  }
  if (absl::StartsWith(words[0], "-")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no option ", words[0], " (try tributary run --help)"));
  }
  if (!absl::EndsWith(words[0], ".py")) {
    TRIBUTARY_ASSIGN_OR_RETURN(words[0], FindInPath(words[0]));
    return words;
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckReadable(words[0]));
  std::error_code error;
  if (!std::filesystem::is_regular_file(words[0], error)) {
    return absl::NotFoundError(absl::StrCat(words[0], ": no such program"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(std::string interpreter, FindInPath(python));
  words.insert(words.begin(), std::move(interpreter));
  return words;
}

// The job as the command line gives it, before the program sets further fields.
// Without a job file a resumed run has the job of its checkpoint; the command
// line and the program may change it.
absl::StatusOr<ProgramJobSource> SourceOf(const RunOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (options.servers > 0) {
    overrides.push_back(absl::StrCat("cluster.servers=", options.servers));
  }
  if (options.workers > 0) {
    overrides.push_back(absl::StrCat("cluster.workers=", options.workers));
  }
  if (!options.job_path.empty()) {
    return ReadProgramJob(options.job_path, std::move(overrides));
  }
  ProgramJobSource source{.overrides = std::move(overrides)};
  if (options.run.resume) {
    source.text = JobToYaml(options.run.resume->job);
    source.file_name = options.run.resume->JobName();
    source.text_yields = true;
  }
  return source;
}

absl::Status Complete(const std::vector<std::string>& words,
                      RunOptions* options) {
  TRIBUTARY_ASSIGN_OR_RETURN(options->run.command,
                             CommandOf(words, options->python));
  TRIBUTARY_ASSIGN_OR_RETURN(options->run.checkpoint_key,
                             ReadCheckpointKey(options->checkpoint_key_file));
  if (!options->resume.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        options->run.resume,
        FindResumePoint(options->resume, options->run.checkpoint_key,
                        options->run.run_dir));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(ProgramJobSource source, SourceOf(*options));
  const auto named = std::find_if(
      options->run.command.begin(), options->run.command.end(),
      [](const std::string& word) { return absl::EndsWith(word, ".py"); });
  source.name = std::filesystem::path(named == options->run.command.end()
                                          ? options->run.command[0]
                                          : *named)
                    .stem()
                    .string();
  TRIBUTARY_ASSIGN_OR_RETURN(options->run.base, ParseProgramBase(source));
  // The ranks start before the program can say how many there are.
  source.overrides.push_back(
      absl::StrCat("cluster.workers=", options->run.base.cluster().workers()));
  options->run.source = std::move(source);
  return absl::OkStatus();
}

// The command that continues this run, whose checkpoints hold the whole job.
std::vector<std::string> ResumeCommand(const std::vector<std::string>& given,
                                       const std::vector<std::string>& words) {
  std::vector<std::string> command = {"tributary", "run", "--resume",
                                      JobRunOptions::Commands::kCheckpoint};
  command.insert(command.end(), given.begin(), given.end());
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

int Run(RunOptions options, const std::vector<std::string>& words,
        const GivenWords& given) {
  if (const absl::Status status = Complete(words, &options); !status.ok()) {
    PrintError(status.message());
    return kExitRefused;
  }
  options.run.commands.resume =
      ResumeCommand(given({"--resume", "--run-dir", "--job", "--set",
                           "--servers", "--workers"}),
                    words);
  options.run.commands.restart =
      ResumeCommand(given({"--resume", "--run-dir"}), words);
  Interrupts::Install();
  return RunProgram(options.run);
}

}  // namespace

void AddRunCommand(CommandLine& program) {
  auto options = std::make_shared<RunOptions>();
  CommandLine run = program.AddCommand("run", kRunDescription);
  run.SetFooter(kRunFooter);
  run.AddOption("--job", &options->job_path,
                "a job file (YAML) without model and data, for what the\n"
                "program does not say");
  run.AddOption("--resume", &options->resume,
                "go on from a checkpoint: a run directory, a directory of\n"
                "checkpoints or one of them");
  run.AddOption("--servers", &options->servers, "parameter servers; default 1")
      .Range(1, 256);
  run.AddOption("--workers", &options->workers, "workers; default 1")
      .Range(1, 1024);
  AddOverrides(run, &options->overrides);
  run.AddOption("--python", &options->python,
                "starts a PROGRAM whose name ends in .py")
      .FromEnvironment("PYTHON")
      .ShowDefault();
  run.AddFlag("--once", &options->run.once,
              "start PROGRAM once: it starts the ranks itself, as torchrun "
              "does");
  run.AddOption("--run-dir", &options->run.run_dir,
                "new or empty folder for what the run leaves behind;\n"
                "default: runs/NAME-DATE-TIME");
  AddListenOption(run, &options->run.listen);
  AddInsecureFlag(run, &options->run.insecure);
  AddCheckpointKeyFlag(run, &options->checkpoint_key_file);
  AddTelemetryOptions(run, &options->run.telemetry);
  run.SetProgramAction([options, given = run.given_words()](
                           const std::vector<std::string>& words) {
    return Run(*options, words, given);
  });
}

}  // namespace tributary
