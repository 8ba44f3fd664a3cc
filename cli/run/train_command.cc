// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/run/check_data.h"
#include "cli/run/job/job_run_options.h"
#include "cli/run/local_run.h"
#include "cli/run/processes/hosts.h"
#include "cli/run/resume.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/step_range.h"
#include "common/command_line/access_flags.h"
#include "common/command_line/telemetry_options.h"
#include "common/job/job_file.h"
#include "common/status/status_macros.h"
#include "coordinator/core/job_plan.h"

namespace tributary {
namespace {

constexpr char kTrainDescription[] =
    "Trains the model of a job file, on this machine or on several.";
constexpr char kTrainFooter[] =
    "Starts the job's parameter servers and workers as processes, shows how\n"
    "training goes and leaves a run directory with metrics, logs and weights.\n"
    "Ctrl-C stops at the next common step and saves the weights; another one,\n"
    "a second or more later, ends everything at once.\n\n"
    "Examples:\n"
    "  tributary train job.yaml      # `tributary --help` has a small one\n"
    "  tributary train job.yaml --servers 2 --workers 4\n"
    "  tributary train job.yaml --set training.epochs=2 \\\n"
    "      --set training.optimizer.adam.learning_rate=0.003\n"
    "  tributary train job.yaml --dry-run   # the resolved job\n"
    "  tributary train job.yaml --worker-hosts 10.0.0.2,10.0.0.3 \\\n"
    "      --listen 10.0.0.1:0   # over ssh; docs/deployment.md\n\n"
    "Exit codes: 0 done, 1 the run failed, 2 command line or job are wrong,\n"
    "130 interrupted, or 128 and the signal. A run that diverges ends with 0,\n"
    "unless the job says training: {divergence: fail}.";

struct TrainOptions {
  CommandJob job;
  int servers = 0;  // 0: as in the job file
  int workers = 0;
  std::string run_dir;
  HostOptions hosts;
  TelemetryOptions telemetry;
  bool dry_run = false;
  bool insecure = false;
  std::string trace;  // steps; empty: as in the job file
  std::string resume;
  JobStart start;
  std::string checkpoint_key_file;
};

std::vector<std::string> Overrides(const TrainOptions& options) {
  std::vector<std::string> overrides = options.job.Overrides();
  if (options.servers > 0) {
    overrides.push_back(absl::StrCat("cluster.servers=", options.servers));
  }
  if (options.workers > 0) {
    overrides.push_back(absl::StrCat("cluster.workers=", options.workers));
  }
  if (const auto steps = ParseStepNumbers(options.trace); steps.ok()) {
    overrides.push_back(absl::StrCat("trace={first_step: ", steps->first,
                                     ", last_step: ", steps->last, "}"));
  }
  return overrides;
}

// Returns the checkpoint's job with the overrides of this command, or the job
// file of this command, which then continues with the checkpoint's weights.
// Refuses a damaged checkpoint before anything starts.
absl::StatusOr<v1::JobSpec> ReadResumedJob(TrainOptions* options,
                                           const std::string& checkpoint_key) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const ResumePoint point,
      FindResumePoint(options->resume, checkpoint_key, options->run_dir));
  TRIBUTARY_RETURN_IF_ERROR(CheckHasModel(point.job, point.folder));
  TRIBUTARY_ASSIGN_OR_RETURN(
      v1::JobSpec job,
      options->job.path.empty()
          ? ResumedJob(point, Overrides(*options))
          : ReadModelJob(options->job.path, Overrides(*options)));
  TRIBUTARY_RETURN_IF_ERROR(CheckResumes(job, point));
  options->start = point.start;
  return job;
}

std::vector<std::string> CommandWith(const std::vector<std::string>& given) {
  std::vector<std::string> words = JobRunOptions::Commands().resume;
  words.insert(words.end(), given.begin(), given.end());
  return words;
}

int Train(TrainOptions options, const GivenWords& given) {
  if (options.job.path.empty() && options.resume.empty()) {
    PrintError("a JOB file, or --resume with what to go on from, is wanted");
    return kExitRefused;
  }
  if (const auto steps = ParseStepNumbers(options.trace);
      !options.trace.empty() && !steps.ok()) {
    PrintError(absl::StrCat("--trace: ", steps.status().message()));
    return kExitRefused;
  }
  const auto key = ReadCheckpointKey(options.checkpoint_key_file);
  if (!key.ok()) {
    PrintError(key.status().message());
    return kExitRefused;
  }
  absl::StatusOr<v1::JobSpec> job =
      options.resume.empty()
          ? ReadModelJob(options.job.path, Overrides(options))
          : ReadResumedJob(&options, *key);
  if (!job.ok()) {
    PrintError(job.status().message());
    return kExitRefused;
  }
  absl::StatusOr<Hosts> hosts = Hosts::Create(options.hosts);
  if (!hosts.ok()) {
    PrintError(hosts.status().message());
    return kExitRefused;
  }
  Interrupts::Install();
  std::string data_record;
  // A resumed run's data were checked before its first step. Data on other
  // hosts are checked by their workers.
  if (options.resume.empty() && !hosts->given()) {
    const absl::Status fits =
        CheckDataFits(options.job.path, Overrides(options), &data_record);
    if (!fits.ok()) return RefuseData(fits);
  }
  if (options.dry_run) {
    printf("%s", JobToYaml(*job).c_str());
    return FinishAnswer();
  }
  std::vector<std::string> restart_command =
      CommandWith(given({"--resume", "--run-dir"}));
  if (!options.job.path.empty()) restart_command.push_back(options.job.path);
  return RunLocally({.job = *std::move(job),
                     .run_dir = options.run_dir,
                     .hosts = *std::move(hosts),
                     .telemetry = options.telemetry,
                     .start = options.start,
                     .data_record = data_record,
                     .checkpoint_key = *key,
                     .commands =
                         {// A checkpoint of this run holds what these say.
                          .resume = CommandWith(given(
                              {"--resume", "--run-dir", "--set", "--servers",
                               "--workers", "--device", "--trace"})),
                          .restart = std::move(restart_command)},
                     .insecure = options.insecure});
}

}  // namespace

void AddTrainCommand(CommandLine& program) {
  auto options = std::make_shared<TrainOptions>();
  CommandLine train = program.AddCommand("train", kTrainDescription);
  train.SetFooter(kTrainFooter);
  AddJobPath(train, &options->job);
  train.AddOption("--resume", &options->resume,
                  "go on from a checkpoint: a run directory, a directory of\n"
                  "checkpoints or one of them; JOB is its own by default");
  train
      .AddOption("--servers", &options->servers,
                 "parameter servers, instead of cluster.servers")
      .Range(1, 256);
  train
      .AddOption("--workers", &options->workers,
                 "workers, instead of cluster.workers")
      .Range(1, 1024);
  AddJobChanges(train, &options->job);
  train.AddOption("--trace", &options->trace,
                  "steps that all processes record for `tributary trace`,\n"
                  "as in 100-105, instead of the job's trace");
  train.AddOption("--run-dir", &options->run_dir,
                  "new or empty folder for what the run leaves behind;\n"
                  "default: runs/NAME-DATE-TIME");
  AddListenOption(train, &options->hosts.listen);
  AddHostOptions(train, &options->hosts);
  AddInsecureFlag(train, &options->insecure);
  AddCheckpointKeyFlag(train, &options->checkpoint_key_file);
  AddInsecureGroupsFlag(train, &options->hosts.insecure_groups);
  AddTelemetryOptions(train, &options->telemetry);
  train.AddFlag("--dry-run", &options->dry_run,
                "check the job and its data, print the resolved job\nand stop");
  train.SetAction([options, given = train.given_words()] {
    return Train(*options, given);
  });
}

}  // namespace tributary
