#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tributary {

// What a server process is told on its command line.
struct ServerOptions {
  std::string coordinator;  // host:port
  std::string listen = "127.0.0.1:0";
  // host:port under which the workers reach this server; empty: the host of
  // `listen`, or this machine's name where that is a wildcard.
  std::string advertise;
  std::optional<uint32_t> index;  // this shard or none; else any free one
  std::string metrics_listen;     // host:port for HTTP; empty: none
  absl::Duration join_timeout = absl::Seconds(60);
};

// A server's life: listens, joins the job, serves its shard, shuts down when the
// job ends. The status is the process's last sentence.
absl::Status RunServer(const ServerOptions& options);

}  // namespace tributary
