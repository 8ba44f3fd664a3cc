// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/run/processes/hosts.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The addresses at which the members of a run serve their metrics. The ports
// follow the coordinator's, servers first, so that a firewall or a scrape
// configuration can name them; a member that is started again keeps its port.
// If the coordinator's port is 0, members use free ports.
class MetricsPorts {
 public:
  // `listen`: the coordinator's host:port; empty: no metrics. InvalidArgument:
  // it is not a host:port, or the ports would exceed the largest one.
  static absl::StatusOr<MetricsPorts> Create(const std::string& listen,
                                             const v1::ClusterSpec& cluster);

  // The address of server or worker `index`, on the coordinator's host or on
  // `host`; empty: no metrics.
  std::string ServerAddress(int index, const Host* host = nullptr) const {
    return Address(1 + index, host);
  }
  std::string WorkerAddress(int index, const Host* host = nullptr) const {
    return Address(1 + num_servers_ + index, host);
  }

 private:
  std::string Address(int place, const Host* host) const;

  std::string host_;  // empty: no metrics
  int port_ = 0;      // the coordinator's; 0: any free port
  int num_servers_ = 0;
};

}  // namespace tributary
