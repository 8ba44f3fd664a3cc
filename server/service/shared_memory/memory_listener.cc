// SPDX-License-Identifier: Apache-2.0
#include "server/service/shared_memory/memory_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/host/process_limits.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr int kTickMillis = 1000;
// How long nothing is accepted after the process has run out of files.
constexpr int kPauseMillis = 100;
constexpr int kAcceptedAtOnce = 64;
constexpr int64_t kWarningPauseMicros = 1'000'000;
constexpr size_t kMostWorkers = 2048;

}  // namespace

size_t MemoryListener::MostWorkers(uint64_t files) {
  return std::min<uint64_t>(kMostWorkers, files / 8);
}

absl::StatusOr<std::unique_ptr<MemoryListener>> MemoryListener::Start(
    Options options) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<const ClaimedSocket> socket,
                             ClaimedSocket::Claim(options.directory));
  TRIBUTARY_ASSIGN_OR_RETURN(UniqueFd listener, ListenUnix(socket->address()));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) return absl::UnavailableError("eventfd");
  return std::unique_ptr<MemoryListener>(
      new MemoryListener(std::move(options), std::move(socket),
                         std::move(listener), std::move(wake)));
}

MemoryListener::MemoryListener(Options options,
                               std::unique_ptr<const ClaimedSocket> socket,
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
}

void MemoryListener::Loop() {
  while (true) {
    const auto accepts = static_cast<short>(pauses_ ? 0 : POLLIN);
    std::vector<pollfd> waits = {{wake_.get(), POLLIN, 0},
                                 {listener_.get(), accepts, 0}};
    for (const Connection& connection : connections_) {
      waits.push_back({connection.socket.get(), POLLIN, 0});
    }
    poll(waits.data(), waits.size(), pauses_ ? kPauseMillis : kTickMillis);
    if (waits[0].revents != 0) break;
    pauses_ = false;
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
    CloseSurplus();
  }
  for (const Connection& connection : connections_) {
    if (connection.admitted != 0) options_.on_gone(connection.admitted);
  }
}

void MemoryListener::Accept() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    UniqueFd socket = options_.accept(listener_);
    if (!socket.ok()) {
      // The connection keeps waiting, so poll would return at once.
      pauses_ = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
      if (pauses_ && !std::exchange(warned_of_files_, true)) {
        spdlog::warn("workers cannot share memory for now: {}",
                     std::strerror(errno));
      }
      return;
    }
    if (!IsOfUser(socket)) continue;  // closes it
    connections_.push_back(
        {.socket = std::move(socket),
         .hello_until = options_.clock->NowMicros() + kHelloMicros});
  }
}

bool MemoryListener::IsOfUser(const UniqueFd& socket) {
  if (options_.any_user) return true;
  const absl::StatusOr<uid_t> user = PeerUser(socket);
  if (user.ok() && *user == options_.user) return true;
  if (user.ok() && !std::exchange(warned_of_user_, true)) {
    spdlog::warn(
        "refused shared memory to a process of user {}, because this server "
        "runs as user {}; if the workers run in containers, start the server "
        "with --shared-memory-any-user",
        *user, options_.user);
  }
  return false;
}

void MemoryListener::CloseSurplus() {
  const size_t most_workers = MostWorkers(FileLimit());
  std::map<uint32_t, size_t> of_rank;
  size_t silent = 0, workers = 0;
  std::vector<Connection> kept;
  for (auto i = connections_.rbegin(); i != connections_.rend(); ++i) {
    if (i->admitted == 0
            ? ++silent <= kMaxSilent
            : ++of_rank[i->rank] <= kMaxOfRank && ++workers <= most_workers) {
      kept.push_back(std::move(*i));
    } else if (i->admitted != 0) {
      options_.on_gone(i->admitted);
    }
  }
  std::reverse(kept.begin(), kept.end());
  connections_ = std::move(kept);
}

bool MemoryListener::Serve(Connection* connection) {
  // After the hello the only news is that the worker has gone.
  return connection->admitted == 0 && Welcome(connection);
}

void MemoryListener::WarnOfRefusal(uint32_t rank, const absl::Status& why) {
  const int64_t now = options_.clock->NowMicros();
  if (now < next_warning_micros_) {
    ++refusals_unsaid_;
    return;
  }
  next_warning_micros_ = now + kWarningPauseMicros;
  const uint64_t before = std::exchange(refusals_unsaid_, 0);
  spdlog::warn("shared memory with rank {}: {}{}", rank,
               std::string(why.message()),
               before > 0 ? absl::StrCat(" (and ", before, " before)") : "");
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
    connection->rank = hello.rank();
  } else {
    WarnOfRefusal(hello.rank(), admitted.status());
    welcome.set_error(std::string(admitted.status().message()));
  }
  const absl::Status sent =
      SendUnix(connection->socket, welcome.SerializeAsString(), memory,
               absl::ZeroDuration());
  return sent.ok() && admitted.ok();
}

}  // namespace tributary
