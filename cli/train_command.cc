#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/checkpoint_place.h"
#include "cli/children.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/interrupts.h"
#include "cli/job_run.h"
#include "cli/metrics_ports.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
#include "common/job/job_file.h"
#include "common/job/job_options.h"
#include "common/status_macros.h"
#include "common/telemetry/flags.h"

namespace tributary {
namespace {

// Members learn the end by their next heartbeat and leave; after so long they
// are killed.
constexpr absl::Duration kLeaveAfterEnd = absl::Seconds(10);
constexpr absl::Duration kLeaveAfterFailure = absl::Seconds(1);

constexpr char kDescription[] =
    "Trains the model of a job file on this machine.";
constexpr char kFooter[] =
    "Starts the job's parameter servers and workers as processes, shows how\n"
    "training goes and leaves a run directory with metrics, logs and weights.\n"
    "Ctrl-C stops at the next common step and saves the weights; a second one\n"
    "ends everything at once.\n\n"
    "Examples:\n"
    "  tributary train examples/digits.yaml\n"
    "  tributary train examples/digits.yaml --servers 2 --workers 4\n"
    "  tributary train examples/digits.yaml --set training.epochs=2 \\\n"
    "      --set training.optimizer.adam.learning_rate=0.003\n"
    "  tributary train examples/digits.yaml --dry-run   # the resolved job\n\n"
    "Exit codes: 0 done, 1 the run failed, 2 command line or job are wrong,\n"
    "130 interrupted.";

struct TrainOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  int servers = 0;  // 0: as the job file says
  int workers = 0;
  std::string device;
  std::string run_dir;
  std::string listen = "127.0.0.1:0";
  TelemetryOptions telemetry;
  bool dry_run = false;
  std::string resume;
  std::string restore_from;  // the checkpoint's folder
  int64_t start_step = 0;
};

std::vector<std::string> Overrides(const TrainOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (options.servers > 0) {
    overrides.push_back(absl::StrCat("cluster.servers=", options.servers));
  }
  if (options.workers > 0) {
    overrides.push_back(absl::StrCat("cluster.workers=", options.workers));
  }
  if (!options.device.empty()) {
    overrides.push_back(absl::StrCat("device=", options.device));
  }
  return overrides;
}

// The programs stand beside this one.
absl::StatusOr<std::string> FindProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / name).string();
  if (error || access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(
        path, " is not there or not a program; it belongs beside tributary"));
  }
  return path;
}

// Where a process on this machine reaches a coordinator that listens there.
std::string LocalAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon);
  if (host == "0.0.0.0") return "127.0.0.1" + port;
  if (host == "[::]") return "[::1]" + port;
  return address;
}

struct Programs {
  std::string server;
  std::string worker;
};

absl::StatusOr<Programs> FindPrograms() {
  Programs programs;
  TRIBUTARY_ASSIGN_OR_RETURN(programs.server, FindProgram("tributary-server"));
  TRIBUTARY_ASSIGN_OR_RETURN(programs.worker, FindProgram("tributary-worker"));
  return programs;
}

std::vector<std::string> LogArguments(const LogOptions& log) {
  return {"--log-format", log.format == LogFormat::kJson ? "json" : "text",
          "--log-level", log.level};
}

absl::Status StartChildren(const v1::JobSpec& job, const Programs& programs,
                           const MetricsPorts& ports,
                           const TrainOptions& options, JobRun& run,
                           Children* children) {
  const auto start = [&](const std::string& name,
                         const std::string& metrics_listen,
                         std::vector<std::string> command) {
    if (!metrics_listen.empty()) {
      command.insert(command.end(), {"--metrics-listen", metrics_listen});
    }
    const std::vector<std::string> log = LogArguments(options.telemetry.log);
    command.insert(command.end(), log.begin(), log.end());
    return children->Start({.name = name,
                            .command = std::move(command),
                            .log_path = run.directory().LogPath(name)});
  };
  const std::string coordinator = LocalAddress(run.coordinator().address());
  for (int i = 0; i < job.cluster().servers(); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(
        start(absl::StrCat("server-", i), ports.ServerAddress(i),
              {programs.server, "--coordinator", coordinator, "--index",
               absl::StrCat(i), "--listen", "127.0.0.1:0"}));
  }
  for (int i = 0; i < WorkerProcesses(job); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(start(absl::StrCat("worker-", i),
                                    ports.WorkerAddress(i),
                                    {programs.worker, "--coordinator",
                                     coordinator, "--index", absl::StrCat(i)}));
  }
  return absl::OkStatus();
}

// The place that "worker-1" was started for.
std::pair<v1::Role, uint32_t> PlaceOf(const ChildProcess& child) {
  const size_t dash = child.name().rfind('-');
  const v1::Role role = child.name().substr(0, dash) == "server"
                            ? v1::ROLE_SERVER
                            : v1::ROLE_WORKER;
  return {role,
          static_cast<uint32_t>(std::stoul(child.name().substr(dash + 1)))};
}

// One that lives, but not for the coordinator, is stopped or stuck. Its place
// is gone, so nothing is lost with it, and another may take its place.
void KillLost(JobRun& run, Children& children) {
  const v1::JobStatusResponse status = run.coordinator().Snapshot();
  children.KillIf([&](const ChildProcess& child) {
    for (const v1::MemberStatus& member : status.members()) {
      if (std::pair(member.role(), member.index()) != PlaceOf(child)) continue;
      const bool lost =
          member.pid() == child.pid() && !member.alive() && !member.finished();
      if (lost) {
        run.console().Note(absl::StrFormat(
            "%s (pid %d) has not been heard for %.1f s and is killed",
            child.name(), child.pid(), member.seconds_since_heartbeat()));
      }
      return lost;
    }
    return false;
  });
}

// What the end of "worker-1" means is the coordinator's to say.
Children::Loss Judge(Coordinator& coordinator, const ChildProcess& child,
                     const std::string& obituary) {
  const auto [role, index] = PlaceOf(child);
  switch (coordinator.MemberLost(role, index, child.pid(), obituary)) {
    case LossVerdict::kReplace:
      return Children::Loss::kReplace;
    case LossVerdict::kGoesOn:
      return Children::Loss::kNotMissed;
    case LossVerdict::kFatal:
      break;
  }
  return Children::Loss::kFatal;
}

int RunJob(v1::JobSpec job, const TrainOptions& options) {
  const absl::StatusOr<Programs> programs = FindPrograms();
  if (!programs.ok()) {
    PrintError(programs.status().message());
    return kExitRefused;
  }
  const absl::StatusOr<MetricsPorts> ports =
      MetricsPorts::Create(options.telemetry.metrics_listen, job.cluster());
  if (!ports.ok()) {
    PrintError(ports.status().message());
    return kExitRefused;
  }
  LogOptions log = options.telemetry.log;
  log.standard_error = false;  // the screen belongs to the progress
  absl::StatusOr<std::unique_ptr<JobRun>> started =
      JobRun::Start({.job = job,
                     .run_dir = options.run_dir,
                     .listen = options.listen,
                     .metrics_listen = options.telemetry.metrics_listen,
                     .log = log,
                     .restore_from = options.restore_from,
                     .start_step = options.start_step});
  if (!started.ok()) {
    PrintError(started.status().message());
    return kExitRefused;
  }
  JobRun& run = **started;
  const v1::ClusterSpec& cluster = job.cluster();
  run.console().Note(
      absl::StrCat(job.name(), ": ", cluster.servers(), " server",
                   cluster.servers() == 1 ? "" : "s", ", ", cluster.workers(),
                   " worker", cluster.workers() == 1 ? "" : "s",
                   ", coordinator ", run.coordinator().address()));
  if (!run.metrics_address().empty()) {
    run.console().Note(absl::StrCat("metrics: http://", run.metrics_address(),
                                    "/metrics, of all processes: "
                                    "/targets there and ",
                                    run.directory().path(),
                                    "/prometheus-targets.json"));
  }
  std::string cause;
  {
    Children children;
    const absl::Status status =
        StartChildren(job, *programs, *ports, options, run, &children);
    if (!status.ok()) run.coordinator().Fail(status.message());
    run.Follow([&] {
      KillLost(run, children);
      const absl::Status tended = children.Tend(
          cluster.max_restarts(),
          [&run](const ChildProcess& child, const std::string& obituary) {
            return Judge(run.coordinator(), child, obituary);
          });
      return tended.ok() ? children.FirstFailure()
                         : std::string(tended.message());
    });
    if (run.failed()) cause = children.FirstKilled();
    children.WaitForAll(run.failed() ? kLeaveAfterFailure : kLeaveAfterEnd);
  }  // Who is still here is killed.
  return run.Conclude(cause);
}

// The job that the checkpoint is of, with the overrides of this command, or
// another one that goes on with its weights. A damaged checkpoint is refused
// before anything begins.
absl::StatusOr<v1::JobSpec> ReadResumedJob(TrainOptions* options) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string folder,
                             CheckpointAt(options->resume));
  for (const FileReport& file : VerifyCheckpoint(folder)) {
    TRIBUTARY_RETURN_IF_ERROR(file.status);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const v1::CheckpointManifest manifest,
                             ReadManifest(folder));
  options->restore_from = std::filesystem::absolute(folder).string();
  options->start_step = manifest.step();
  if (!options->job_path.empty()) {
    return ReadJobFile(options->job_path, Overrides(*options));
  }
  return ParseJob(JobToYaml(manifest.job()), folder + "/job",
                  Overrides(*options));
}

int Train(TrainOptions options) {
  if (options.job_path.empty() && options.resume.empty()) {
    PrintError("a JOB file, or --resume with what to go on from, is wanted");
    return kExitRefused;
  }
  absl::StatusOr<v1::JobSpec> job =
      options.resume.empty() ? ReadJobFile(options.job_path, Overrides(options))
                             : ReadResumedJob(&options);
  if (!job.ok()) {
    PrintError(job.status().message());
    return kExitRefused;
  }
  if (options.dry_run) {
    printf("%s", JobToYaml(*job).c_str());
    return kExitDone;
  }
  Interrupts::Install();
  return RunJob(*std::move(job), options);
}

}  // namespace

void AddTrainCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* train = app.add_subcommand("train", kDescription);
  train->footer(kFooter);
  train->add_option("JOB", options->job_path, "the job file (YAML)");
  train->add_option("--resume", options->resume,
                    "go on from a checkpoint: a run directory, a directory of\n"
                    "checkpoints or one of them; JOB is its own by default");
  train
      ->add_option("--servers", options->servers,
                   "parameter servers, instead of cluster.servers")
      ->check(CLI::Range(1, 256));
  train
      ->add_option("--workers", options->workers,
                   "workers, instead of cluster.workers")
      ->check(CLI::Range(1, 1024));
  AddOverrides(*train, &options->overrides);
  train
      ->add_option("--device", options->device,
                   "auto, cpu or cuda, instead of the job's device")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  train->add_option("--run-dir", options->run_dir,
                    "new or empty folder for what the run leaves behind;\n"
                    "default: runs/NAME-DATE-TIME");
  train
      ->add_option("--listen", options->listen,
                   "HOST:PORT of the coordinator, for tributary status")
      ->capture_default_str();
  AddTelemetryOptions(*train, &options->telemetry);
  train->add_flag("--dry-run", options->dry_run,
                  "print the resolved job and stop");
  train->callback(
      [options, action] { *action = [options] { return Train(*options); }; });
}

}  // namespace tributary
