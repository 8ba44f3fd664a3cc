// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/unique_fd.h"

namespace tributary {

// Sockets between processes of one machine that carry messages with a
// descriptor (unix(7), SOCK_SEQPACKET). An address is a path, or "@name" for
// the abstract names of a network namespace, which vanish with their socket.
// No call blocks for longer than its timeout.

// A message has at most this many bytes.
inline constexpr size_t kMaxUnixMessageBytes = 4096;

struct UnixMessage {
  std::string bytes;
  UniqueFd descriptor;  // or none
};

// InvalidArgument: the address is too long. Unavailable: it cannot be bound.
absl::StatusOr<UniqueFd> ListenUnix(const std::string& address);
// Accepts a waiting connection. Returns a socket that is not ok, with errno, if
// none waits (EAGAIN) or it cannot be accepted (EMFILE).
UniqueFd AcceptUnix(const UniqueFd& listener);
// The user of the process at the other end when it connected or listened
// (SO_PEERCRED, unix(7)).
absl::StatusOr<uid_t> PeerUser(const UniqueFd& socket);
// Unavailable: nobody listens there.
absl::StatusOr<UniqueFd> ConnectUnix(const std::string& address);
// Whether this path is a socket at which nobody listens; also true between bind
// and listen. False if that cannot be determined.
bool IsAbandonedUnix(const std::string& path);

// descriptor: -1 for none. DeadlineExceeded, or Unavailable when the other side
// has gone.
absl::Status SendUnix(const UniqueFd& socket, const std::string& bytes,
                      int descriptor, absl::Duration timeout);
absl::StatusOr<UnixMessage> ReceiveUnix(const UniqueFd& socket,
                                        absl::Duration timeout);

}  // namespace tributary
