// SPDX-License-Identifier: Apache-2.0
#include "cli/run/members/member_processes.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/role_name.h"

namespace tributary {

std::string LocalAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon);
  if (host == "0.0.0.0") return "127.0.0.1" + port;
  if (host == "[::]") return "[::1]" + port;
  return address;
}

absl::Status MemberProcesses::Start(v1::Role role, int index, const Host& host,
                                    const std::string& metrics_listen,
                                    std::vector<std::string> command) {
  const std::string name = absl::StrCat(RoleName(role), "-", index);
  if (!metrics_listen.empty()) {
    command.insert(command.end(), {"--metrics-listen", metrics_listen});
  }
  command.insert(
      command.end(),
      {"--log-format", log.format == LogFormat::kJson ? "json" : "text",
       "--log-level", log.level});
  if (insecure_metrics) command.push_back("--insecure-metrics");
  std::string input;
  if (keys != nullptr) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        const AccessBundle bundle,
        keys->For(role == v1::ROLE_SERVER ? PeerRole::kServer
                                          : PeerRole::kWorker));
    input = bundle.ToLine();
    command.insert(command.end(), {"--tls", "-"});
  } else {
    command.push_back("--insecure");
  }
  return children.Start({.name = name,
                         .command = host.Command(std::move(command)),
                         .log_path = run.directory().LogPath(name),
                         .role = role,
                         .index = static_cast<uint32_t>(index),
                         .input = std::move(input)});
}

absl::Status MemberProcesses::StartServers(const std::string& program) {
  for (int i = 0; i < job.cluster().servers(); ++i) {
    const Host host = hosts.Server(i);
    TRIBUTARY_RETURN_IF_ERROR(Start(
        v1::ROLE_SERVER, i, host,
        ports.ServerAddress(i, hosts.given() ? &host : nullptr),
        {program, "--coordinator", LocalAddress(run.coordinator().address()),
         "--index", absl::StrCat(i), "--listen", host.At(0)}));
  }
  return absl::OkStatus();
}

absl::Status MemberProcesses::StartWorkers(const std::string& program) {
  for (int i = 0; i < StrategyOf(job).worker_processes(); ++i) {
    const Host host = hosts.Worker(i);
    std::vector<std::string> command = {
        program, "--coordinator", LocalAddress(run.coordinator().address()),
        "--index", absl::StrCat(i)};
    command.insert(command.end(), worker_arguments.begin(),
                   worker_arguments.end());
    if (hosts.insecure_groups()) command.push_back("--insecure-groups");
    if (hosts.given()) {
      command.insert(command.end(),
                     {"--local-rank", absl::StrCat(hosts.LocalRank(i))});
    }
    TRIBUTARY_RETURN_IF_ERROR(
        Start(v1::ROLE_WORKER, i, host,
              ports.WorkerAddress(i, hosts.given() ? &host : nullptr),
              std::move(command)));
  }
  return absl::OkStatus();
}

void NoteBeginning(const v1::JobSpec& job, JobRun& run) {
  const v1::ClusterSpec& cluster = job.cluster();
  run.console().Note(
      absl::StrCat(job.name(), ": ", cluster.servers(), " server",
                   cluster.servers() == 1 ? "" : "s", ", ", cluster.workers(),
                   " worker", cluster.workers() == 1 ? "" : "s",
                   ", coordinator ", run.coordinator().address()));
  if (run.metrics_address().empty()) return;
  run.console().Note(absl::StrCat("status page: ", run.pages_url(), "/"));
  run.console().Note(absl::StrCat("metrics: ", run.pages_url(),
                                  "/metrics, of all processes: "
                                  "/targets there and ",
                                  run.directory().path(),
                                  "/prometheus-targets.json"));
}

}  // namespace tributary
