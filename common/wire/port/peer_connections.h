// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"

namespace tributary {

// A peer's address as gRPC tells it, "ipv4:10.0.0.2:40000" or
// "ipv6:%5B::1%5D:40000", without its percent signs.
std::string PlainAddress(absl::string_view peer);

// The connections of a process's ports: whose they are, how many bytes of
// messages are still arriving on each, and how many calls are under way. Closes
// those that exceed the limits, so that a peer costs a bounded amount.
//
// A connection is a member's once a whole call on it has shown the ticket of a
// server or worker; until then it is nobody's. If a limit is exceeded,
// connections that are nobody's are closed, those of the host that has most of
// them. A member whose connection is closed connects and calls again: it loses
// time, but nothing else. Thread-safe.
class PeerConnections {
 public:
  struct Limits {
    // The most connections: in all, nobody's, and of one member.
    size_t connections = 4096;
    size_t nobodys = 1024;
    size_t of_member = 8;
    // The most bytes of messages that have not arrived whole: `bytes` for a
    // member, or for one connection that is nobody's; `nobodys_bytes` for all
    // connections that are nobody's.
    int64_t bytes = 128 << 20;
    int64_t nobodys_bytes = 512 << 20;
    // The same for the number of calls under way.
    int64_t calls = 1024;
    int64_t nobodys_calls = 4096;
    // The most calls of a caller whose headers have come, but not the messages.
    int64_t arriving = 1024;
  };

  // Identifies a caller. Each member has its own name, such as "worker 3".
  // Callers that are not members share one name for each kind: "observers".
  struct CallerAccount {
    std::string name;
    bool is_member = false;
  };

  // A connection, as far as the system tells.
  class Socket {
   public:
    virtual ~Socket() = default;
    // Bytes that have come so far; -1: one end has closed the connection.
    virtual int64_t Received() = 0;
    // Ends the connection for both ends.
    virtual void Shut() = 0;
  };

  explicit PeerConnections(const Clock* clock = &Clock::Real());

  void SetLimits(const Limits& limits);
  Limits limits() const;

  // Adds a connection. It may be closed at once, or another in its place.
  void Open(const std::string& address, std::unique_ptr<Socket> socket);
  // The headers of a call have come. False: this caller has begun too many
  // calls whose messages have not arrived, and may try again. Nothing tells
  // that a call has ended without its message; therefore a tenth of the calls
  // that a caller may begin is given back in each second.
  bool Begin(const CallerAccount& caller);
  // The message of a call, of this size, has arrived whole.
  void Arrived(absl::string_view address, const CallerAccount& caller,
               size_t bytes);
  // Looks at all connections, forgets those that are over and closes those that
  // exceed the limits. Returns the addresses of those that may have other calls
  // under way than before; tell them to SetCalls.
  std::vector<std::string> Look();
  void SetCalls(absl::string_view address, int64_t calls);

  struct Totals {
    size_t connections = 0, nobodys = 0;
    int64_t bytes = 0, calls = 0;  // of those that are not being closed
    uint64_t closed = 0;           // so far, because of the limits
  };
  Totals totals() const;

 private:
  struct Begun {
    double calls = 0;
    int64_t since_micros = 0;
  };
  struct Connection {
    std::unique_ptr<Socket> socket;
    std::string host;
    std::string member;   // "worker 3"; empty: nobody's
    uint64_t number = 0;  // counted up: the older, the lower
    int64_t received = 0, asked_at = 0;
    int64_t bytes = 0;  // still arriving
    int64_t calls = 0;
    bool closing = false;
  };
  using All = std::unordered_map<std::string, Connection>;
  using Amount = int64_t Connection::*;

  // False when the connection is over.
  static bool Measure(Connection* connection);
  void Close(const std::string& address, absl::string_view why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(All::iterator connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Finds the host with the most connections that are nobody's. Returns the
  // address of the oldest of these; empty: there is none.
  std::string NobodysOldest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeRoom(const std::string& newest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void BecomeMembers(All::iterator connection, const std::string& member)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Enforce(Amount amount, int64_t most, int64_t nobodys_most,
               absl::string_view what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The connection is a member's from now on, or is over.
  void LeaveNobodys(const Connection& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets some connections that were closed and are over.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  mutable absl::Mutex mu_;
  Limits limits_ ABSL_GUARDED_BY(mu_);
  All all_ ABSL_GUARDED_BY(mu_);  // by address
  std::map<std::string, std::map<uint64_t, std::string>> nobodys_
      ABSL_GUARDED_BY(mu_);  // by host and number: the address
  size_t num_nobodys_ ABSL_GUARDED_BY(mu_) = 0;
  std::unordered_map<std::string, Begun> begun_ ABSL_GUARDED_BY(mu_);
  std::deque<std::string> closing_ ABSL_GUARDED_BY(mu_);  // their addresses
  uint64_t opened_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t closed_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t told_ ABSL_GUARDED_BY(mu_) = 0;  // closed_ when last logged
  int64_t told_micros_ ABSL_GUARDED_BY(mu_) = INT64_MIN / 2;
};

}  // namespace tributary
