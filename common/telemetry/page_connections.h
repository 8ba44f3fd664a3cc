// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

struct sockaddr;

namespace tributary {

// The text of a peer's address, without its port. An IPv6 address is cut to its
// first 64 bits, because a host may have all addresses that begin with them.
// Empty: another kind of address.
std::string PeerHost(const sockaddr& address);
// The port of an IPv4 or IPv6 address.
int PortOf(const sockaddr& address);

// The connections to a page's port. A connection has a limited time to send
// each whole request, however often it sends a byte, and to receive the answer.
// If there are too many connections, the host with the most connections loses
// the one that has been in its phase the longest. So a new connection is always
// accepted, and one host cannot keep out another. Thread-safe.
class PageConnections {
 public:
  struct Limits {
    size_t connections = 64;  // of all hosts
    size_t of_host = 16;      // of one; a browser opens six
    int64_t request_micros = 5'000'000;
    int64_t answer_micros = 15'000'000;
  };
  // Shuts the connection of this socket down for both ends; its owner closes
  // it.
  using Shut = std::function<void(int fd)>;

  PageConnections(const Clock* clock, Limits limits, Shut shut)
      : clock_(clock), limits_(limits), shut_(std::move(shut)) {}

  // Whether this daemon may accept one more connection; false after Close. Call
  // Begin for each connection that it accepts.
  bool Admit(uint64_t daemon);
  // A connection that this daemon has accepted begins. May shut another one.
  void Begin(int fd, const std::string& host, uint64_t daemon = 0);
  // Call Asked when a whole request has arrived, Answered when its answer has
  // been sent.
  void Asked(int fd) { EnterPhase(fd, /*answers=*/true); }
  void Answered(int fd) { EnterPhase(fd, /*answers=*/false); }
  // Call it before the socket is closed.
  void End(int fd);

  // Shuts the connections whose time is over. Call it regularly.
  void ShutLate();
  // Shuts all connections of the daemons with numbers up to this one. True when
  // all of them have ended; false: some have not after `limit`.
  bool Close(uint64_t daemon, absl::Duration limit);

  size_t size() const;  // without those that were shut

 private:
  struct Connection {
    std::string host;
    int64_t since_micros = 0;  // when its phase began
    uint64_t number = 0;       // of all connections so far
    uint64_t daemon = 0;       // that has accepted it
    bool answers = false;      // its request has arrived
    bool shut = false;
  };

  void EnterPhase(int fd, bool answers);
  // Shuts the connection that has been in its phase the longest, among those
  // whose host is chosen, but not `except`.
  void ShutOldest(int except,
                  const std::function<bool(const std::string& host)>& chosen)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many open connections each host has.
  std::map<std::string, size_t> Counts() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  const Limits limits_;
  const Shut shut_;
  mutable absl::Mutex mu_;
  std::map<int, Connection> all_ ABSL_GUARDED_BY(mu_);  // by socket
  uint64_t begun_ ABSL_GUARDED_BY(mu_) = 0;
  int admitted_ ABSL_GUARDED_BY(mu_) = 0;     // and not begun yet
  int64_t closed_ ABSL_GUARDED_BY(mu_) = -1;  // daemons up to this one closed
};

}  // namespace tributary
