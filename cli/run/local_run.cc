#include "cli/run/local_run.h"

#include <memory>
#include <utility>

#include "cli/run/children.h"
#include "cli/run/find_program.h"
#include "cli/run/job_run.h"
#include "cli/run/members/member_processes.h"
#include "cli/run/members/watch_members.h"
#include "cli/run/metrics_ports.h"
#include "cli/terminal/console.h"
#include "common/host/process_limits.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Members learn from their next heartbeat that the job has ended, and exit;
// after this time they are killed. On other hosts only the launchers can be
// killed, so these members get the longer time after a failure, too.
constexpr absl::Duration kLeaveAfterEnd = absl::Seconds(10);
constexpr absl::Duration kLeaveAfterFailure = absl::Seconds(1);

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
  NoteBeginning(options.job, run);
  const bool launched = options.hosts.given();
  std::string cause;
  {
    Children children(cluster.max_restarts());
    MemberProcesses members{options.job,           options.hosts, *ports,
                            options.telemetry.log, run,           children};
    absl::Status status = members.StartServers(programs->server);
    if (status.ok()) status = members.StartWorkers(programs->worker);
    if (!status.ok()) run.coordinator().control().Fail(status.message());
    cause = WatchMembers(
        run,
        {.shrinks = cluster.on_worker_loss() == v1::WORKER_LOSS_SHRINK,
         .launched = launched},
        children);
    children.WaitForAll(run.failed() && !launched ? kLeaveAfterFailure
                                                  : kLeaveAfterEnd);
  }  // The destructor kills the remaining children.
  return run.Conclude(cause);
}

}  // namespace tributary
