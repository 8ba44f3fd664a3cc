// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/telemetry/http_listener.h"
#include "common/wire/identity/access.h"

namespace tributary {

// Options of a server process, from its command line.
struct ServerOptions {
  std::string coordinator;  // host:port
  std::string listen = "127.0.0.1:0";
  // host:port under which workers reach this server. Empty: the host of
  // `listen`, or this machine's name when that host is a wildcard.
  std::string advertise;
  std::optional<uint32_t> index;  // the shard to hold; none: any free one
  std::string metrics_listen;     // host:port for HTTP; empty: none
  // Directory for the socket over which workers of this machine share memory;
  // empty: an abstract name, for workers in the same network namespace.
  std::string shared_memory_directory;
  bool shared_memory_any_user = false;  // accepts workers of other users
  absl::Duration join_timeout = absl::Minutes(10);
  Access access;
  PageAccess pages;
  // Folders below which the job's checkpoints must lie; empty: anywhere.
  std::vector<std::string> checkpoint_roots;
  bool reflection = false;  // as ParameterServer::Options
};

// Runs a server: listens, joins the job, serves its shard and shuts down when
// the job ends. The process prints the returned error and exits.
absl::Status RunServer(const ServerOptions& options);

}  // namespace tributary
