// SPDX-License-Identifier: Apache-2.0
#include "cli/run/local_run.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/jobs/job_register.h"
#include "cli/run/check_memory.h"
#include "cli/run/job/job_run.h"
#include "cli/run/job/run_keys.h"
#include "cli/run/members/member_processes.h"
#include "cli/run/members/watch_members.h"
#include "cli/run/metrics_ports.h"
#include "cli/run/processes/children.h"
#include "cli/run/processes/find_program.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/host/private_files.h"
#include "common/host/process_limits.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/access.h"

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

std::vector<std::string> ProbeArguments(const LocalRunOptions::Probe& probe) {
  if (probe.last_step == 0) return {};
  return {"--probe",       probe.folder,
          "--probe-first", absl::StrCat(probe.first_step),
          "--probe-last",  absl::StrCat(probe.last_step)};
}

// Stops the job after the probe's last step. The job writes a checkpoint there,
// and would otherwise continue.
void StopAfter(const LocalRunOptions::Probe& probe, JobRun& run) {
  if (probe.last_step == 0) return;
  const JobTotals totals = run.coordinator().control().Totals();
  if (totals.checkpoint_step < probe.last_step) return;
  run.coordinator().control().RequestStop();
}

// The programs, ports and keys that a run needs before it begins.
struct Ground {
  Programs programs;
  MetricsPorts ports;
  RunAccess access;
};

absl::StatusOr<Ground> Prepare(const LocalRunOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(const Programs programs, FindPrograms());
  const v1::ClusterSpec& cluster = options.job.cluster();
  TRIBUTARY_RETURN_IF_ERROR(CheckProcessLimits(FilesOf(cluster)));
  if (!options.hosts.given()) {
    TRIBUTARY_RETURN_IF_ERROR(CheckMemoryOfModel(options.job));
  }
  TRIBUTARY_RETURN_IF_ERROR(
      CheckGroups(options.job, options.hosts, options.insecure));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const MetricsPorts ports,
      MetricsPorts::Create(options.telemetry.metrics_listen, cluster));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const RunAccess access,
      MakeRunAccess(options.insecure, options.telemetry));
  return Ground{programs, ports, access};
}

JobRun::Options RunOptionsOf(const LocalRunOptions& options,
                             const RunAccess& access) {
  const bool probes = options.probe.last_step > 0;
  LogOptions log = options.telemetry.log;
  log.standard_error = false;  // the screen shows the progress
  return {.job = options.job,
          .start = options.start,
          .folder = {.run_dir = options.run_dir,
                     .registered_in = probes ? "" : JobRegisterFolder()},
          .listening = {.address = options.hosts.listen(),
                        .access = access.coordinator},
          .metrics = {.listen = options.telemetry.metrics_listen,
                      .access = access.pages},
          .output = {.log = log, .quiet = probes},
          .keys = {.checkpoint = options.checkpoint_key, .run = access.keys},
          .commands = options.commands,
          .data_record = options.data_record};
}

// Starts the members and follows the job to its end. Returns a better reason
// for a failure than the coordinator's; empty: there is none.
std::string Train(const LocalRunOptions& options, const Ground& ground,
                  JobRun& run) {
  const v1::ClusterSpec& cluster = options.job.cluster();
  const bool launched = options.hosts.given();
  Children children(cluster.max_restarts());  // kills those that remain
  MemberProcesses members{options.job,
                          options.hosts,
                          ground.ports,
                          options.telemetry.log,
                          run,
                          children,
                          ProbeArguments(options.probe),
                          ground.access.keys,
                          options.telemetry.insecure_metrics};
  absl::Status status = members.StartServers(ground.programs.server);
  if (status.ok()) status = members.StartWorkers(ground.programs.worker);
  if (!status.ok()) run.coordinator().control().Fail(status.message());
  std::string cause = WatchMembers(
      run,
      {.shrinks = cluster.on_worker_loss() == v1::WORKER_LOSS_SHRINK,
       .launched = launched,
       .look = [&run, &probe = options.probe] { StopAfter(probe, run); }},
      children);
  children.WaitForAll(run.failed() && !launched ? kLeaveAfterFailure
                                                : kLeaveAfterEnd);
  return cause;
}

}  // namespace

absl::Status CheckGroups(const v1::JobSpec& job, const Hosts& hosts,
                         bool insecure) {
  const Strategy strategy = StrategyOf(job);
  if (!strategy.has_groups() || strategy.one_process()) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(
      const Access access,
      Access::Read(
          {.insecure = insecure, .insecure_groups = hosts.insecure_groups()},
          PeerRole::kCoordinator));
  return access.CheckListenInClear(LocalAddress(hosts.listen()));
}

int RunLocally(const LocalRunOptions& options) {
  KeepFilesPrivate();
  const absl::StatusOr<Ground> ground = Prepare(options);
  if (!ground.ok()) {
    PrintError(ground.status().message());
    return kExitRefused;
  }
  absl::StatusOr<std::unique_ptr<JobRun>> started =
      JobRun::Start(RunOptionsOf(options, ground->access));
  if (!started.ok()) {
    PrintError(started.status().message());
    return kExitRefused;
  }
  JobRun& run = **started;
  NoteBeginning(options.job, run);
  return run.Conclude(Train(options, *ground, run));
}

}  // namespace tributary
