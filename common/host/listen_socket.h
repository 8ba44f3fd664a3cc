// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace tributary {

// Listens for TCP connections on host:port and gives the sockets, one for each
// address of the host, all with the same port. Port 0: any that is free. A
// wildcard host (0.0.0.0 or [::]) means IPv4 and IPv6. The sockets never block,
// and child processes do not inherit them. InvalidArgument: not host:port.
// Unavailable: the port is taken, or the host is not this machine's; the
// message is only the system's reason.
absl::StatusOr<std::vector<UniqueFd>> ListenOn(const std::string& address,
                                               int backlog);

// Listening sockets that another part of this process can take over. Null or
// empty: there are none, or they have been taken.
using ListeningSockets = std::shared_ptr<std::vector<UniqueFd>>;

// The port of a socket that listens.
int PortOf(int fd);

}  // namespace tributary
