#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/run/hosts.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Where the members of a run tell their metrics: the ports
// after the coordinator's, servers first, so that a firewall or a scrape config
// can name them; a member that is started again has the same. Free ports where
// the coordinator's is 0.
class MetricsPorts {
 public:
  // `listen` is the coordinator's host:port; empty: nobody tells any.
  // InvalidArgument: no host:port, or not so many ports above it.
  static absl::StatusOr<MetricsPorts> Create(const std::string& listen,
                                             const v1::ClusterSpec& cluster);

  // Of server or worker `index`, at the coordinator's host or on one of its
  // own; empty: none.
  std::string ServerAddress(int index, const Host* host = nullptr) const {
    return Address(1 + index, host);
  }
  std::string WorkerAddress(int index, const Host* host = nullptr) const {
    return Address(1 + num_servers_ + index, host);
  }

 private:
  std::string Address(int place, const Host* host) const;

  std::string host_;  // empty: no metrics
  int port_ = 0;      // the coordinator's; 0: free ones
  int num_servers_ = 0;
};

}  // namespace tributary
