// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "common/host/memory/unix_socket.h"
#include "server/service/shared_memory/claimed_socket.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {

// Listens on a Unix socket for workers of the same machine that want to share
// memory with this server (docs/messages.md, "Shared memory"). A connection of
// another user is closed at once. A connection without a valid hello is closed
// after kHelloMicros. One thread, which only waits.
class MemoryListener {
 public:
  // The most connections that have not sent a hello yet, and the most of one
  // rank: a worker may connect again before its old connection ends. If there
  // are more, the oldest are closed.
  static constexpr size_t kMaxSilent = 64;
  static constexpr size_t kMaxOfRank = 2;
  // How long a connection may take to send its hello.
  static constexpr int64_t kHelloMicros = 5'000'000;

  // The answer to an admitted worker: the number of its connection and a
  // descriptor of the server's memory.
  struct Admitted {
    uint64_t connection = 0;
    UniqueFd memory;
  };
  struct Options {
    // Directory of the socket, for processes that share no network namespace,
    // such as containers; empty: an abstract name.
    std::string directory;
    // Accepts connections of every user of this machine: for workers in
    // containers with other user ids. Their tickets are still checked.
    bool any_user = false;
    uid_t user = geteuid();  // who may connect, unless any_user
    const Clock* clock = &Clock::Real();
    std::function<UniqueFd(const UniqueFd&)> accept = AcceptUnix;
    // Both are called on the listener's thread.
    std::function<absl::StatusOr<Admitted>(const v1::SharedMemoryHello& hello,
                                           const UniqueFd& memory)>
        admit;
    std::function<void(uint64_t connection)> on_gone;
  };

  // Unavailable: no such socket can be made.
  static absl::StatusOr<std::unique_ptr<MemoryListener>> Start(Options options);
  // Ends the thread and every connection.
  ~MemoryListener();

  // For ConnectUnix.
  const std::string& socket() const { return socket_->address(); }

  // The most workers that may be connected at once in a process that may have
  // `files` files open. They get a quarter of these; other peers may use the
  // rest (FilesForPeers).
  static size_t MostWorkers(uint64_t files);

 private:
  struct Connection {
    UniqueFd socket;
    int64_t hello_until = 0;
    uint64_t admitted = 0;  // its number; 0: no hello yet
    uint32_t rank = 0;      // of an admitted one
  };

  MemoryListener(Options options, std::unique_ptr<const ClaimedSocket> socket,
                 UniqueFd listener, UniqueFd wake);

  void Loop();
  void Accept();
  // Whether the user of the process at the other end may connect.
  bool IsOfUser(const UniqueFd& socket);
  // Closes the oldest connections beyond the limits.
  void CloseSurplus();
  // False: the connection is over.
  bool Serve(Connection* connection);
  bool Welcome(Connection* connection);
  // Logs why a worker was refused, at most once a second. Otherwise any process
  // that may connect could fill the log.
  void WarnOfRefusal(uint32_t rank, const absl::Status& why);

  const Options options_;
  const std::unique_ptr<const ClaimedSocket> socket_;
  const UniqueFd listener_;
  const UniqueFd wake_;
  // These belong to the thread.
  std::vector<Connection> connections_;  // the oldest first
  bool pauses_ = false;                  // accepts none for a moment
  bool warned_of_files_ = false;
  bool warned_of_user_ = false;
  int64_t next_warning_micros_ = 0;
  uint64_t refusals_unsaid_ = 0;
  std::thread thread_;
};

}  // namespace tributary
