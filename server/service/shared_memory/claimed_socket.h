// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace tributary {

// A name for the Unix socket of one server, in a directory that several servers
// may use. A file beside the socket is locked (flock(2)) as long as the server
// lives. The destructor removes socket and file.
class ClaimedSocket {
 public:
  // First removes the sockets of servers that were killed: nobody holds their
  // lock and nobody listens at them. A server that is busy, stopped or about to
  // listen keeps its socket. Without a directory: an abstract name, which
  // vanishes with its socket. Unavailable: the directory cannot be used.
  static absl::StatusOr<std::unique_ptr<ClaimedSocket>> Claim(
      const std::string& directory);
  ~ClaimedSocket();
  ClaimedSocket(const ClaimedSocket&) = delete;
  ClaimedSocket& operator=(const ClaimedSocket&) = delete;

  // For ListenUnix and ConnectUnix.
  const std::string& address() const { return address_; }

 private:
  ClaimedSocket(std::string address, UniqueFd lock)
      : address_(std::move(address)), lock_(std::move(lock)) {}

  const std::string address_;
  const UniqueFd lock_;  // none: an abstract name
};

}  // namespace tributary
