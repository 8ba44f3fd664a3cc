// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {

// Listens on a Unix socket for workers of the same machine that want to share
// memory with this server (docs/formats.md, "Shared memory"). A connection that
// says nothing, or something else, is closed. One thread, which only waits.
class MemoryListener {
 public:
  // Further connections are refused.
  static constexpr size_t kMaxConnections = 1024;
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
    const Clock* clock = &Clock::Real();
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
  const std::string& socket() const { return socket_; }

 private:
  struct Connection {
    UniqueFd socket;
    int64_t hello_until = 0;
    uint64_t admitted = 0;  // its number; 0: no hello yet
  };

  MemoryListener(Options options, std::string socket, UniqueFd listener,
                 UniqueFd wake);

  void Loop();
  void Accept();
  // False: the connection is over.
  bool Serve(Connection* connection);
  bool Welcome(Connection* connection);

  const Options options_;
  const std::string socket_;
  const UniqueFd listener_;
  const UniqueFd wake_;
  std::vector<Connection> connections_;  // the thread's
  std::thread thread_;
};

}  // namespace tributary
