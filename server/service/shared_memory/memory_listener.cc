// SPDX-License-Identifier: Apache-2.0
#include "server/service/shared_memory/memory_listener.h"

#include <dirent.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/host/unix_socket.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr char kPrefix[] = "tributary-";
constexpr char kSuffix[] = ".sock";
constexpr int kTickMillis = 1000;

// Removes the sockets of servers that were killed: nobody answers there.
void RemoveStale(const std::string& directory) {
  DIR* const files = opendir(directory.c_str());
  if (files == nullptr) return;
  while (const dirent* file = readdir(files)) {
    if (!absl::StartsWith(file->d_name, kPrefix) ||
        !absl::EndsWith(file->d_name, kSuffix)) {
      continue;
    }
    const std::string path = absl::StrCat(directory, "/", file->d_name);
    if (!ConnectUnix(path).ok()) unlink(path.c_str());
  }
  closedir(files);
}

std::string NewAddress(const std::string& directory) {
  std::random_device chance;
  const std::string name =
      absl::StrCat(kPrefix, absl::Hex(chance(), absl::kZeroPad8),
                   absl::Hex(chance(), absl::kZeroPad8));
  return directory.empty() ? absl::StrCat("@", name)
                           : absl::StrCat(directory, "/", name, kSuffix);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryListener>> MemoryListener::Start(
    Options options) {
  if (!options.directory.empty()) RemoveStale(options.directory);
  std::string socket = NewAddress(options.directory);
  TRIBUTARY_ASSIGN_OR_RETURN(UniqueFd listener, ListenUnix(socket));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) return absl::UnavailableError("eventfd");
  return std::unique_ptr<MemoryListener>(
      new MemoryListener(std::move(options), std::move(socket),
                         std::move(listener), std::move(wake)));
}

MemoryListener::MemoryListener(Options options, std::string socket,
                               UniqueFd listener, UniqueFd wake)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      thread_([this] { Loop(); }) {}

MemoryListener::~MemoryListener() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
  thread_.join();
  if (!absl::StartsWith(socket_, "@")) unlink(socket_.c_str());
}

void MemoryListener::Loop() {
  while (true) {
    std::vector<pollfd> waits = {{wake_.get(), POLLIN, 0},
                                 {listener_.get(), POLLIN, 0}};
    for (const Connection& connection : connections_) {
      waits.push_back({connection.socket.get(), POLLIN, 0});
    }
    poll(waits.data(), waits.size(), kTickMillis);
    if (waits[0].revents != 0) break;
    const int64_t now = options_.clock->NowMicros();
    std::vector<Connection> still;
    for (size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = connections_[i];
      const bool late =
          connection.admitted == 0 && now > connection.hello_until;
      if (!late && (waits[i + 2].revents == 0 || Serve(&connection))) {
        still.push_back(std::move(connection));
      } else if (connection.admitted != 0) {
        options_.on_gone(connection.admitted);
      }
    }
    connections_ = std::move(still);
    if (waits[1].revents != 0) Accept();
  }
  for (const Connection& connection : connections_) {
    if (connection.admitted != 0) options_.on_gone(connection.admitted);
  }
}

void MemoryListener::Accept() {
  while (true) {
    UniqueFd socket = AcceptUnix(listener_);
    if (!socket.ok()) return;
    if (connections_.size() >= kMaxConnections) continue;  // closes it
    connections_.push_back(
        {.socket = std::move(socket),
         .hello_until = options_.clock->NowMicros() + kHelloMicros});
  }
}

bool MemoryListener::Serve(Connection* connection) {
  // After the hello the only news is that the worker has gone.
  return connection->admitted == 0 && Welcome(connection);
}

bool MemoryListener::Welcome(Connection* connection) {
  const absl::StatusOr<UnixMessage> message =
      ReceiveUnix(connection->socket, absl::ZeroDuration());
  v1::SharedMemoryHello hello;
  if (!message.ok() || !message->descriptor.ok() ||
      !hello.ParseFromString(message->bytes)) {
    return false;
  }
  absl::StatusOr<Admitted> admitted =
      options_.admit(hello, message->descriptor);
  v1::SharedMemoryWelcome welcome;
  int memory = -1;
  if (admitted.ok()) {
    welcome.set_connection(admitted->connection);
    memory = admitted->memory.get();
    connection->admitted = admitted->connection;
  } else {
    spdlog::warn("shared memory with rank {}: {}", hello.rank(),
                 std::string(admitted.status().message()));
    welcome.set_error(std::string(admitted.status().message()));
  }
  const absl::Status sent =
      SendUnix(connection->socket, welcome.SerializeAsString(), memory,
               absl::ZeroDuration());
  return sent.ok() && admitted.ok();
}

}  // namespace tributary
