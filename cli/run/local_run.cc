#include "cli/run/local_run.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/run/children.h"
#include "cli/run/find_program.h"
#include "cli/run/job_run.h"
#include "cli/run/metrics_ports.h"
#include "cli/terminal/console.h"
#include "common/base/clock.h"
#include "common/host/process_limits.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Members learn from their next heartbeat that the job has ended, and exit;
// after this time they are killed. On other hosts only the launchers can be
// killed, so these members get the longer time after a failure, too.
constexpr absl::Duration kLeaveAfterEnd = absl::Seconds(10);
constexpr absl::Duration kLeaveAfterFailure = absl::Seconds(1);

// The address at which a process on this machine reaches a coordinator that
// listens on `address`.
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

absl::Status StartChildren(const Programs& programs, const MetricsPorts& ports,
                           const LocalRunOptions& options, JobRun& run,
                           Children* children) {
  const v1::JobSpec& job = options.job;
  const Hosts& hosts = options.hosts;
  const auto start = [&](v1::Role role, int index, const Host& host,
                         const std::string& metrics_listen,
                         std::vector<std::string> command) {
    const std::string name =
        absl::StrCat(role == v1::ROLE_SERVER ? "server-" : "worker-", index);
    if (!metrics_listen.empty()) {
      command.insert(command.end(), {"--metrics-listen", metrics_listen});
    }
    const std::vector<std::string> log = LogArguments(options.telemetry.log);
    command.insert(command.end(), log.begin(), log.end());
    return children->Start({.name = name,
                            .command = host.Command(std::move(command)),
                            .log_path = run.directory().LogPath(name),
                            .role = role,
                            .index = static_cast<uint32_t>(index)});
  };
  const std::string coordinator = LocalAddress(run.coordinator().address());
  for (int i = 0; i < job.cluster().servers(); ++i) {
    const Host host = hosts.Server(i);
    TRIBUTARY_RETURN_IF_ERROR(
        start(v1::ROLE_SERVER, i, host,
              ports.ServerAddress(i, hosts.given() ? &host : nullptr),
              {programs.server, "--coordinator", coordinator, "--index",
               absl::StrCat(i), "--listen", host.At(0)}));
  }
  for (int i = 0; i < StrategyOf(job).worker_processes(); ++i) {
    const Host host = hosts.Worker(i);
    std::vector<std::string> command = {programs.worker, "--coordinator",
                                        coordinator, "--index",
                                        absl::StrCat(i)};
    if (hosts.given()) {
      command.insert(command.end(),
                     {"--local-rank", absl::StrCat(hosts.LocalRank(i))});
    }
    TRIBUTARY_RETURN_IF_ERROR(
        start(v1::ROLE_WORKER, i, host,
              ports.WorkerAddress(i, hosts.given() ? &host : nullptr),
              std::move(command)));
  }
  return absl::OkStatus();
}

// The job's status at `micros` or slightly later.
struct Known {
  explicit Known(const JobControl& job)
      : micros(Clock::Real().NowMicros()), status(job.Snapshot()) {}

  const int64_t micros;  // read before the status
  const v1::JobStatusResponse status;
};

// Whether the child was started for this place.
bool IsPlaceOf(const ChildProcess& child, const v1::MemberStatus& member) {
  return member.role() == child.options().role &&
         member.index() == child.options().index;
}

// The member that a child has registered as; null: it has not registered. A
// launched process has a pid of its own, perhaps on another machine. It is
// recognized by its heartbeat: since the child started, no other process has
// been heard in its place, because the previous holder was expelled by then.
const v1::MemberStatus* MemberOf(const ChildProcess& child, bool launched,
                                 const Known& known) {
  const double age_seconds =
      static_cast<double>(known.micros - child.started_micros()) / 1e6;
  for (const v1::MemberStatus& member : known.status.members()) {
    if (!IsPlaceOf(child, member)) continue;
    const bool own = launched
                         ? member.pid() != 0 &&
                               member.seconds_since_heartbeat() < age_seconds
                         : member.pid() == child.pid();
    return own ? &member : nullptr;
  }
  return nullptr;
}

// Whether another process holds the rank that this child was started for. If
// lost ranks are taken over, that can happen before the loss is noticed here.
bool TakenOver(const ChildProcess& child, const Known& known) {
  for (const v1::MemberStatus& member : known.status.members()) {
    if (IsPlaceOf(child, member)) {
      return member.role() == v1::ROLE_WORKER && member.alive() &&
             member.pid() != child.pid();
    }
  }
  return false;
}

// Kills children that are alive but have lost their place: they are stopped or
// stuck. Their work is lost already, and killing them lets another process
// start.
void KillLost(JobRun& run, const v1::ClusterSpec& cluster, bool launched,
              Children& children) {
  const Known known(run.coordinator().control());
  const bool shrinks = cluster.on_worker_loss() == v1::WORKER_LOSS_SHRINK;
  children.KillIf([&](const ChildProcess& child) {
    if (shrinks && !launched && TakenOver(child, known)) {
      run.console().Note(
          absl::StrFormat("%s (pid %d) is killed: another process has its rank",
                          child.name(), child.pid()));
      return true;
    }
    const v1::MemberStatus* const member = MemberOf(child, launched, known);
    if (member == nullptr || member->alive() || member->finished()) {
      return false;
    }
    run.console().Note(absl::StrFormat(
        "%s (%spid %d) has not been heard for %.1f s and is killed",
        child.name(), launched ? "its launcher, " : "", child.pid(),
        member->seconds_since_heartbeat()));
    return true;
  });
}

// Asks the coordinator what the end of a child such as "worker-1" means.
Children::Loss Judge(JobControl& job, bool launched, const ChildProcess& child,
                     const std::string& obituary) {
  constexpr int64_t kNobody = 0;
  const Known known(job);
  const v1::MemberStatus* const member = MemberOf(child, launched, known);
  const int64_t pid = member == nullptr ? kNobody : member->pid();
  // A child that exits before training begins has found an error, so the run
  // fails. A child that is killed is treated as lost, as during training.
  if (known.status.phase() == v1::JOB_PHASE_WAITING && !child.killed()) {
    return Children::Loss::kFatal;
  }
  switch (job.MemberLost(child.options().role, child.options().index, pid,
                         obituary)) {
    case LossVerdict::kReplace:
      return Children::Loss::kReplace;
    case LossVerdict::kGoesOn:
      return Children::Loss::kNotMissed;
    case LossVerdict::kFatal:
      break;
  }
  return Children::Loss::kFatal;
}

void NoteBeginning(const v1::ClusterSpec& cluster, JobRun& run,
                   const std::string& name) {
  run.console().Note(
      absl::StrCat(name, ": ", cluster.servers(), " server",
                   cluster.servers() == 1 ? "" : "s", ", ", cluster.workers(),
                   " worker", cluster.workers() == 1 ? "" : "s",
                   ", coordinator ", run.coordinator().address()));
  if (run.metrics_address().empty()) return;
  run.console().Note(absl::StrCat("metrics: http://", run.metrics_address(),
                                  "/metrics, of all processes: "
                                  "/targets there and ",
                                  run.directory().path(),
                                  "/prometheus-targets.json"));
}

}  // namespace

int RunLocally(const LocalRunOptions& options) {
  const absl::StatusOr<Programs> programs = FindPrograms();
  if (!programs.ok()) {
    PrintError(programs.status().message());
    return kExitRefused;
  }
  const v1::ClusterSpec& cluster = options.job.cluster();
  if (const absl::Status limits = CheckProcessLimits(FilesOf(cluster));
      !limits.ok()) {
    PrintError(limits.message());
    return kExitRefused;
  }
  const absl::StatusOr<MetricsPorts> ports =
      MetricsPorts::Create(options.telemetry.metrics_listen, cluster);
  if (!ports.ok()) {
    PrintError(ports.status().message());
    return kExitRefused;
  }
  LogOptions log = options.telemetry.log;
  log.standard_error = false;  // the screen shows the progress
  absl::StatusOr<std::unique_ptr<JobRun>> started =
      JobRun::Start({.job = options.job,
                     .run_dir = options.run_dir,
                     .listen = options.listen,
                     .metrics_listen = options.telemetry.metrics_listen,
                     .log = log,
                     .start = options.start});
  if (!started.ok()) {
    PrintError(started.status().message());
    return kExitRefused;
  }
  JobRun& run = **started;
  NoteBeginning(cluster, run, options.job.name());
  const bool launched = options.hosts.given();
  std::string cause;
  {
    Children children(cluster.max_restarts());
    const absl::Status status =
        StartChildren(*programs, *ports, options, run, &children);
    if (!status.ok()) run.coordinator().control().Fail(status.message());
    std::string not_started;
    run.Follow([&] {
      KillLost(run, cluster, launched, children);
      const absl::Status tended =
          children.Tend([&run, launched](const ChildProcess& child,
                                         const std::string& obituary) {
            return Judge(run.coordinator().control(), launched, child,
                         obituary);
          });
      if (!tended.ok()) not_started = std::string(tended.message());
      return tended.ok() ? children.FirstFailure() : not_started;
    });
    if (run.failed()) {
      cause = not_started.empty() ? children.FirstKilled() : not_started;
    }
    children.WaitForAll(run.failed() && !launched ? kLeaveAfterFailure
                                                  : kLeaveAfterEnd);
  }  // The destructor kills the remaining children.
  return run.Conclude(cause);
}

}  // namespace tributary
