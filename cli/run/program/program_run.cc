// SPDX-License-Identifier: Apache-2.0
#include "cli/run/program/program_run.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/run/check_memory.h"
#include "cli/run/job/job_run.h"
#include "cli/run/members/member_processes.h"
#include "cli/run/members/watch_members.h"
#include "cli/run/metrics_ports.h"
#include "cli/run/processes/children.h"
#include "cli/run/processes/find_program.h"
#include "cli/run/program/await_job.h"
#include "cli/run/program/log_follower.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/host/private_files.h"
#include "common/host/process_limits.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "coordinator/service/intake/job_intake.h"

namespace tributary {
namespace {

constexpr absl::Duration kStartTimeout = absl::Minutes(10);
constexpr absl::Duration kRanksLook = absl::Milliseconds(100);
constexpr absl::Duration kRanksLeaveAfterFailure = absl::Seconds(1);
constexpr absl::Duration kServersLeave = absl::Seconds(10);

// The name of the rank, or of the single process, whose output is shown.
constexpr char kFirstRank[] = "worker-0";
constexpr char kOneProcess[] = "program";

class ProgramRun {
 public:
  explicit ProgramRun(const ProgramRunOptions& options)
      : options_(options), children_(options.base.cluster().max_restarts()) {}

  // Finds the server program, checks the limits, listens, and creates the run
  // directory. Starts no process.
  absl::Status Prepare() {
    TRIBUTARY_ASSIGN_OR_RETURN(server_, FindProgram("tributary-server"));
    TRIBUTARY_RETURN_IF_ERROR(
        CheckProcessLimits(FilesOf(options_.base.cluster())));
    TRIBUTARY_ASSIGN_OR_RETURN(
        ports_, MetricsPorts::Create(options_.telemetry.metrics_listen,
                                     options_.base.cluster()));
    SilenceLog();  // until the log file exists
    TRIBUTARY_ASSIGN_OR_RETURN(
        access_, MakeRunAccess(options_.insecure, options_.telemetry));
    TRIBUTARY_RETURN_IF_ERROR(access_.coordinator.CheckListen(options_.listen));
    TRIBUTARY_ASSIGN_OR_RETURN(
        intake_, JobIntake::Start(
                     options_.listen, options_.source,
                     std::make_shared<CallGuard>(access_.coordinator.Guard())));
    TRIBUTARY_ASSIGN_OR_RETURN(
        directory_, RunDirectory::Create(options_.run_dir, options_.base,
                                         std::time(nullptr)));
    path_ = directory_->path();
    if (access_.keys != nullptr) {
      TRIBUTARY_ASSIGN_OR_RETURN(
          tls_, access_.keys->Save(std::filesystem::absolute(path_).string(),
                                   PeerRole::kWorker));
      TRIBUTARY_RETURN_IF_ERROR(
          access_.keys->Save(path_, PeerRole::kOperator).status());
    }
    registered_ = RegisterWaiting(options_.source.name, *intake_, path_,
                                  access_.coordinator.encrypted());
    shown_.emplace(
        directory_->LogPath(options_.once ? kOneProcess : kFirstRank));
    return absl::OkStatus();
  }

  int Run() {
    const absl::Status started = StartRanks();
    absl::StatusOr<v1::JobSpec> job =
        started.ok() ? AwaitJob(*intake_, kStartTimeout,
                                [this] { return WatchUnsubmitted(); })
                     : absl::StatusOr<v1::JobSpec>(started);
    if (job.ok() && options_.resume) {
      if (absl::Status status = CheckResumes(*job, *options_.resume);
          !status.ok()) {
        job = status;
      }
    }
    if (!job.ok()) return GiveUp(job.status());
    return Train(*job);
  }

 private:
  absl::Status StartRanks() {
    const int ranks = options_.once ? 1 : options_.base.cluster().workers();
    for (int rank = 0; rank < ranks; ++rank) {
      TRIBUTARY_RETURN_IF_ERROR(children_.Start(OptionsOf(rank)));
    }
    return absl::OkStatus();
  }

  ChildProcess::Options OptionsOf(int rank) const {
    const int workers = options_.base.cluster().workers();
    ChildProcess::Options child;
    child.name = options_.once ? kOneProcess : absl::StrCat("worker-", rank);
    child.command = options_.command;
    child.log_path = directory_->LogPath(child.name);
    child.environment = {
        absl::StrCat("TRIBUTARY_COORDINATOR=",
                     LocalAddress(intake_->address())),
        absl::StrCat("TRIBUTARY_WORLD_SIZE=", workers),
        // Python shows what it prints at once, although a file receives it.
        "PYTHONUNBUFFERED=1"};
    if (!tls_.empty()) {
      child.environment.push_back(absl::StrCat("TRIBUTARY_TLS=", tls_));
    }
    if (const std::string& token = options_.telemetry.metrics_token_file;
        !token.empty()) {
      child.environment.push_back(
          absl::StrCat("TRIBUTARY_METRICS_TOKEN_FILE=",
                       std::filesystem::absolute(token).string()));
    }
    if (options_.insecure || options_.telemetry.insecure_metrics) {
      child.environment.push_back("TRIBUTARY_INSECURE=1");
    }
    if (options_.once) return child;
    child.role = v1::ROLE_WORKER;
    child.index = static_cast<uint32_t>(rank);
    for (const char* name : {"TRIBUTARY_RANK", "RANK", "LOCAL_RANK"}) {
      child.environment.push_back(absl::StrCat(name, "=", rank));
    }
    child.environment.push_back(absl::StrCat("WORLD_SIZE=", workers));
    if (const std::string listen = ports_.WorkerAddress(rank);
        !listen.empty()) {
      child.environment.push_back(
          absl::StrCat("TRIBUTARY_METRICS_LISTEN=", listen));
    }
    return child;
  }

  // Says why no job will come; empty: a job may still come. A killed rank is
  // started again.
  std::string WatchUnsubmitted() {
    ShowOutput(console_, shown_->TakeLines());
    console_.Wait("waiting for the program to say what it trains");
    const absl::Status tended =
        children_.Tend([](const ChildProcess& child, const std::string&) {
          return child.killed() ? Children::Loss::kReplace
                                : Children::Loss::kFatal;
        });
    if (!tended.ok()) return std::string(tended.message());
    std::string why = children_.FirstFailure();
    if (why.empty()) {
      why = children_.FirstLeft([](const ChildProcess&) { return true; });
      if (!why.empty()) absl::StrAppend(&why, " (it has not joined the job)");
    }
    return why;
  }

  int GiveUp(const absl::Status& why) {
    ShowOutput(console_, shown_->TakeRest());
    console_.End();
    PrintError(why.message());
    console_.Note(absl::StrCat("run directory: ", path_));
    return ExitCodeOf(why);
  }

  int Train(const v1::JobSpec& job) {
    const std::string address = intake_->address();
    const ListeningSockets listening = intake_->HandOver();
    intake_.reset();
    console_.End();
    LogOptions log = options_.telemetry.log;
    log.standard_error = false;  // the screen shows the progress
    absl::StatusOr<std::unique_ptr<JobRun>> started = JobRun::Start(
        {.job = job,
         .start = options_.resume ? options_.resume->start : JobStart{},
         .folder = {.registered_in = JobRegisterFolder()},
         .listening = {.address = address,
                       .sockets = listening,
                       .access = access_.coordinator},
         .metrics = {.listen = options_.telemetry.metrics_listen,
                     .access = access_.pages},
         .output = {.log = log},
         .keys = {.checkpoint = options_.checkpoint_key, .run = access_.keys},
         .commands = options_.commands,
         .check_model =
             [&job](const v1::DeclareModelRequest& model) {
               std::vector<int64_t> sizes;
               for (const ParameterSpec& p : FromProto(model.parameters())) {
                 sizes.push_back(p.size());
               }
               return CheckMemoryOfProgram(job, sizes);
             }},
        std::move(directory_));
    if (!started.ok()) return GiveUp(started.status());
    if (registered_) registered_->Leave();
    JobRun& run = **started;
    children_.set_max_restarts(job.cluster().max_restarts());
    NoteBeginning(job, run);
    if (const absl::Status status = StartServers(job, run); !status.ok()) {
      run.coordinator().control().Fail(status.message());
    }
    const std::string cause = WatchMembers(
        run,
        {.programs = true,
         .look = [&] { ShowOutput(run.console(), shown_->TakeLines()); }},
        children_);
    const std::string late_failure = AwaitRanks(run);
    children_.KillIf([](const ChildProcess&) { return true; });
    children_.WaitForAll(kServersLeave);
    ShowOutput(run.console(), shown_->TakeRest());
    const int code = run.Conclude(cause);
    if (code != kExitDone || late_failure.empty()) return code;
    PrintError(absl::StrCat("after the training, ", late_failure));
    return kExitFailed;
  }

  absl::Status StartServers(const v1::JobSpec& job, JobRun& run) {
    return MemberProcesses{job,
                           Hosts(),
                           ports_,
                           options_.telemetry.log,
                           run,
                           children_,
                           {},
                           access_.keys,
                           options_.telemetry.insecure_metrics}
        .StartServers(server_);
  }

  // Waits until the programs have ended after the training, or a signal comes.
  // Returns the message about a program that has failed meanwhile.
  std::string AwaitRanks(JobRun& run) {
    if (run.failed()) {
      children_.WaitForAll(kRanksLeaveAfterFailure);
      return "";
    }
    const int signals = Interrupts::Requested();
    while (children_.AnyAlive(v1::ROLE_WORKER) ||
           children_.AnyAlive(v1::ROLE_UNSPECIFIED)) {
      ShowOutput(run.console(), shown_->TakeLines());
      if (signals != Interrupts::Requested()) {
        return "the program was interrupted";
      }
      absl::SleepFor(kRanksLook);
    }
    children_.WaitForAll(kServersLeave);
    return children_.FirstUnsuccessful();
  }

  static void ShowOutput(Console& console,
                         const std::vector<std::string>& lines) {
    for (const std::string& line : lines) console.Note(line);
  }

  const ProgramRunOptions& options_;
  std::string server_;  // the path of tributary-server
  std::string path_;    // of the run directory
  RunAccess access_;
  std::string tls_;  // the folder of the programs' certificate; empty: none
  Console console_{&Clock::Real()};  // until there is a JobRun
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<JobIntake> intake_;
  std::unique_ptr<JobRegister::Entry> registered_;  // until there is a JobRun
  MetricsPorts ports_;
  std::optional<LogFollower> shown_;  // the output that the screen shows
  Children children_;
};

}  // namespace

int RunProgram(const ProgramRunOptions& options) {
  KeepFilesPrivate();
  ProgramRun run(options);
  if (const absl::Status status = run.Prepare(); !status.ok()) {
    PrintError(status.message());
    return kExitRefused;
  }
  return run.Run();
}

}  // namespace tributary
