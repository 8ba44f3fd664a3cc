// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/run/job/job_run.h"
#include "cli/run/job/run_keys.h"
#include "cli/run/metrics_ports.h"
#include "cli/run/processes/children.h"
#include "cli/run/processes/hosts.h"
#include "common/telemetry/log.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The address at which a process on this machine reaches a coordinator that
// listens on `address`.
std::string LocalAddress(const std::string& address);

// Starts the servers and workers of a run as children.
struct MemberProcesses {
  const v1::JobSpec& job;
  const Hosts& hosts;
  const MetricsPorts& ports;
  const LogOptions& log;
  JobRun& run;
  Children& children;
  std::vector<std::string> worker_arguments = {};  // additional ones
  std::shared_ptr<const RunKeys> keys = nullptr;   // null: in clear text
  bool insecure_metrics = false;

  // `program`: the path of tributary-server and tributary-worker.
  absl::Status StartServers(const std::string& program);
  absl::Status StartWorkers(const std::string& program);

 private:
  absl::Status Start(v1::Role role, int index, const Host& host,
                     const std::string& metrics_listen,
                     std::vector<std::string> command);
};

// Shows what the run consists of and where its metrics are.
void NoteBeginning(const v1::JobSpec& job, JobRun& run);

}  // namespace tributary
