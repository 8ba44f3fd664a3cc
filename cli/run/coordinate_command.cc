// SPDX-License-Identifier: Apache-2.0
#include "cli/run/coordinate_command.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/jobs/job_register.h"
#include "cli/run/job/job_run.h"
#include "cli/run/program/await_job.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/command_line/access_flags.h"
#include "common/command_line/page_access.h"
#include "common/command_line/telemetry_options.h"
#include "common/host/private_files.h"
#include "common/host/process_limits.h"
#include "common/job/job_file.h"
#include "common/job/program/program_job.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/access.h"
#include "coordinator/service/intake/job_intake.h"

namespace tributary {
namespace {

constexpr absl::Duration kFarewell = absl::Seconds(10);

struct CoordinateOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  int servers = 0;  // 0: as in the job file
  int workers = 0;
  std::string run_dir;
  std::string listen;          // empty: as AddressOf says
  ListeningSockets listening;  // of the program's intake
  AccessOptions access;
  std::string checkpoint_key_file;
  bool reflection = false;
  double start_seconds = 600;
  TelemetryOptions telemetry;
};

// Returns the job of a program whose coordinator has ended before the job did.
std::optional<v1::JobSpec> EarlierJob(const std::string& run_dir) {
  if (run_dir.empty() || RunDirectory::HasSummary(run_dir)) return std::nullopt;
  const absl::StatusOr<v1::CoordinatorState> state =
      RunDirectory::ReadState(run_dir);
  if (!state.ok() || !state->job().has_program()) return std::nullopt;
  return state->job();
}

// Returns the job of the job file, or the job that a program submits.
absl::StatusOr<v1::JobSpec> FindJob(
    const Access& access, CoordinateOptions* options,
    std::unique_ptr<JobRegister::Entry>* waiting) {
  std::vector<std::string> overrides = options->overrides;
  if (options->servers > 0) {
    overrides.push_back(absl::StrCat("cluster.servers=", options->servers));
  }
  if (options->workers > 0) {
    overrides.push_back(absl::StrCat("cluster.workers=", options->workers));
  }
  if (options->job_path.empty() && options->workers == 0) {
    return absl::InvalidArgumentError(
        "--job is wanted, or --workers for a program that says what it trains");
  }
  ProgramJobSource source{.name = "program", .overrides = overrides};
  if (!options->job_path.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(source,
                               ReadProgramJob(options->job_path, overrides));
    TRIBUTARY_ASSIGN_OR_RETURN(const bool for_program, IsForProgram(source));
    if (!for_program) return ReadJobFile(options->job_path, overrides);
  }
  TRIBUTARY_RETURN_IF_ERROR(ParseProgramBase(source).status());
  if (std::optional<v1::JobSpec> earlier = EarlierJob(options->run_dir)) {
    const v1::ClusterSpec& cluster = earlier->cluster();
    const bool same =
        (options->servers == 0 || options->servers == cluster.servers()) &&
        (options->workers == 0 || options->workers == cluster.workers());
    if (same) return *std::move(earlier);
    return absl::FailedPreconditionError(absl::StrCat(
        "run directory ", options->run_dir,
        " holds a job that has not ended, with ", cluster.servers(),
        " servers and ", cluster.workers(), " workers"));
  }
  const std::string name = source.name;
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<JobIntake> intake,
      JobIntake::Start(options->listen, std::move(source),
                       std::make_shared<CallGuard>(access.Guard())));
  options->listen = intake->address();
  *waiting =
      RegisterWaiting(name, *intake, /*run_directory=*/"", access.encrypted());
  Console(&Clock::Real())
      .Note(absl::StrCat("coordinator ", options->listen,
                         " waits for a program to say what it trains"));
  absl::StatusOr<v1::JobSpec> job =
      AwaitJob(*intake, absl::Seconds(options->start_seconds),
               [] { return std::string(); });
  if (job.ok()) options->listening = intake->HandOver();
  return job;
}

// A coordinator that asks who calls may be reached from other machines.
constexpr char kEverywhere[] = "0.0.0.0:7070";
constexpr char kHere[] = "127.0.0.1:7070";

// The keys and certificates that decide who may call, read the pages and read
// checkpoints.
struct Secrets {
  Access access;
  PageAccess pages;
  std::string checkpoint_key;
};

// Reads the secrets, and decides on which addresses the coordinator listens.
absl::StatusOr<Secrets> ReadSecrets(CoordinateOptions* options) {
  Secrets secrets;
  TRIBUTARY_ASSIGN_OR_RETURN(
      secrets.access, Access::Read(options->access, PeerRole::kCoordinator));
  if (options->listen.empty()) {
    options->listen = secrets.access.encrypted() ? kEverywhere : kHere;
  }
  TRIBUTARY_RETURN_IF_ERROR(secrets.access.CheckListen(options->listen));
  TRIBUTARY_ASSIGN_OR_RETURN(
      secrets.pages, ReadPageAccess(options->telemetry, secrets.access));
  TRIBUTARY_ASSIGN_OR_RETURN(secrets.checkpoint_key,
                             ReadCheckpointKey(options->checkpoint_key_file));
  return secrets;
}

int Coordinate(CoordinateOptions options) {
  KeepFilesPrivate();
  Interrupts::Install();
  if (options.telemetry.log.format == LogFormat::kJson) WriteRecords();
  const absl::StatusOr<Secrets> secrets = ReadSecrets(&options);
  if (!secrets.ok()) {
    PrintError(secrets.status().message());
    return kExitRefused;
  }
  std::unique_ptr<JobRegister::Entry> waiting;
  const absl::StatusOr<v1::JobSpec> job =
      FindJob(secrets->access, &options, &waiting);
  if (!job.ok()) {
    PrintError(job.status().message());
    const bool waited = absl::IsCancelled(job.status()) ||
                        absl::IsDeadlineExceeded(job.status());
    return waited ? ExitCodeOf(job.status()) : kExitRefused;
  }
  if (const absl::Status limits = CheckProcessLimits(FilesOf(job->cluster()));
      !limits.ok()) {
    PrintError(limits.message());
    return kExitRefused;
  }
  LogOptions log = options.telemetry.log;
  // On a terminal, the progress display takes the log's place.
  log.standard_error = isatty(STDERR_FILENO) != 1;
  const auto started =
      JobRun::Start({.job = *job,
                     .start_timeout = absl::Seconds(options.start_seconds),
                     .folder = {.run_dir = options.run_dir,
                                .registered_in = JobRegisterFolder(),
                                .take_over = true},
                     .listening = {.address = options.listen,
                                   .sockets = options.listening,
                                   .access = secrets->access,
                                   .reflection = options.reflection},
                     .metrics = {.listen = options.telemetry.metrics_listen,
                                 .access = secrets->pages},
                     .output = {.log = log},
                     .keys = {.checkpoint = secrets->checkpoint_key}});
  if (!started.ok()) {
    PrintError(started.status().message());
    return kExitRefused;
  }
  if (waiting) waiting->Leave();  // the run has replaced it
  JobRun& run = **started;
  run.console().Note(
      absl::StrCat(job->name(), ": coordinator ", run.coordinator().address(),
                   " waits for servers: ", job->cluster().servers(),
                   ", workers: ", job->cluster().workers()));
  run.Follow([] { return std::string(); });
  run.coordinator().control().WaitUntilEveryoneKnowsEnd(kFarewell);
  return run.Conclude();
}

}  // namespace

void AddCoordinateOptions(CommandLine& command) {
  auto options = std::make_shared<CoordinateOptions>();
  command.AddOption(
      "--job", &options->job_path,
      "the job file (YAML); without one, or without model and data\n"
      "in it, a program says what it trains");
  command
      .AddOption("--servers", &options->servers,
                 "parameter servers, instead of cluster.servers")
      .Range(1, 256);
  command
      .AddOption("--workers", &options->workers,
                 "workers, instead of cluster.workers")
      .Range(1, 1024);
  command.AddOption(
      "--listen", &options->listen,
      "HOST:PORT to listen on; default: 0.0.0.0:7070 with --tls,\n"
      "127.0.0.1:7070 without");
  AddListenerAccessFlags(command, &options->access);
  AddCheckpointKeyFlag(command, &options->checkpoint_key_file);
  AddReflectionFlag(command, &options->reflection);
  command.AddOption("--run-dir", &options->run_dir,
                    "new or empty folder for what the run leaves behind;\n"
                    "default: runs/NAME-DATE-TIME");
  AddOverrides(command, &options->overrides);
  command
      .AddOption("--start-timeout", &options->start_seconds,
                 "seconds that servers and workers may take to come")
      .ShowDefault()
      .Positive();
  AddTelemetryOptions(command, &options->telemetry);
  command.SetAction([options] { return Coordinate(*options); });
}

}  // namespace tributary
