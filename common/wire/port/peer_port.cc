// SPDX-License-Identifier: Apache-2.0
#include "common/wire/port/peer_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/host/address.h"
#include "common/host/listen_socket.h"
#include "common/host/process_limits.h"
#include "common/status/status_macros.h"
#include "common/wire/channel.h"
#include "common/wire/port/open_calls.h"

namespace tributary {
namespace {

constexpr int kPeerBacklog = 1024;
constexpr int kAcceptedAtOnce = 64;
// How often the thread looks at the connections. After a long look the pause is
// longer, up to a limit, so that looking takes a twentieth of a processor.
constexpr int64_t kPauseMicros = 50'000;
constexpr int64_t kLongestPauseMicros = 200'000;
constexpr int64_t kPausesPerLook = 20;

// The processor time that this thread has used.
int64_t ThreadMicros() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000 + used.tv_nsec / 1000;
}

// States of a connection that gRPC has not closed (the kernel's tcp_states.h).
// In the last state the peer sends no more; gRPC notices this when it reads.
constexpr int kEstablished = 1;
constexpr int kSynReceived = 3;
constexpr int kCloseWait = 8;

// A second descriptor of a connection that gRPC owns.
class TcpSocket final : public PeerConnections::Socket {
 public:
  explicit TcpSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  int64_t Received() override {
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
      return -1;
    }
    const bool open = info.tcpi_state == kEstablished ||
                      info.tcpi_state == kSynReceived ||
                      info.tcpi_state == kCloseWait;
    return open ? static_cast<int64_t>(info.tcpi_bytes_received) : -1;
  }
  void Shut() override { shutdown(fd_.get(), SHUT_RDWR); }

 private:
  const UniqueFd fd_;
};

// The peer's address as gRPC writes it; empty: the peer has gone.
std::string AddressOfPeer(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "";
  }
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(ipv4.sin_port));
  }
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
  const int port = ntohs(ipv6.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
    inet_ntop(AF_INET, &ipv6.sin6_addr.s6_addr[12], text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", port);
  }
  inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof(text));
  const std::string scope =
      ipv6.sin6_scope_id == 0 ? "" : absl::StrCat("%", ipv6.sin6_scope_id);
  return absl::StrCat("ipv6:[", text, scope, "]:", port);
}

}  // namespace

size_t MostConnections() {
  constexpr uint64_t kMost = 8192;
  return std::min(kMost, FilesForPeers() / 2);
}

PeerPort::PeerPort(std::vector<UniqueFd> sockets,
                   std::shared_ptr<const CallGuard> guard)
    : sockets_(std::move(sockets)),
      guard_(std::move(guard)),
      connections_(guard_->connections()),
      port_(PortOf(sockets_.front().get())),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

absl::StatusOr<std::unique_ptr<PeerPort>> PeerPort::Listen(
    const std::string& address, std::shared_ptr<const CallGuard> guard,
    const ListeningSockets& listening) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(address));
  const bool takes_over = listening != nullptr && !listening->empty();
  absl::StatusOr<std::vector<UniqueFd>> sockets =
      takes_over ? std::exchange(*listening, {})
                 : ListenOn(address, kPeerBacklog);
  if (!sockets.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address, ": ", sockets.status().message()));
  }
  PeerConnections::Limits limits = guard->connections()->limits();
  limits.connections = MostConnections();
  guard->connections()->SetLimits(limits);
  return std::unique_ptr<PeerPort>(
      new PeerPort(*std::move(sockets), std::move(guard)));
}

void PeerPort::AddTo(grpc::ServerBuilder* builder, int calls) {
  using Builder = grpc::ServerBuilder::experimental_type;
  acceptor_ = builder->experimental().AddExternalConnectionAcceptor(
      Builder::ExternalConnectionType::FROM_FD, guard_->ForServer());
  LimitConnections(builder, calls);
}

void PeerPort::Start() {
  thread_ = std::thread([this] { Run(); });
}

void PeerPort::Join() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written =
      write(wake_.get(), &one, sizeof(one));
  thread_.join();
  uint64_t read_again = 0;
  [[maybe_unused]] const ssize_t size =
      read(wake_.get(), &read_again, sizeof(read_again));
}

std::vector<UniqueFd> PeerPort::TakeSockets() {
  const bool started = thread_.joinable();
  Join();
  std::vector<UniqueFd> sockets = std::exchange(sockets_, {});
  if (started) Start();
  return sockets;
}

void PeerPort::Stop() {
  if (!thread_.joinable() || sockets_.empty()) return;
  TakeSockets();  // clients that connect now are refused
}

ListeningSockets PeerPort::Release() {
  return std::make_shared<std::vector<UniqueFd>>(TakeSockets());
}

void PeerPort::Run() {
  std::vector<pollfd> waits = {{wake_.get(), POLLIN, 0}};
  for (const UniqueFd& socket : sockets_) {
    waits.push_back({socket.get(), POLLIN, 0});
  }
  OpenCalls open_calls;
  const Clock& clock = Clock::Real();
  int64_t next_look = 0;
  while (waits[0].revents == 0) {
    const int64_t left = std::max<int64_t>(0, next_look - clock.NowMicros());
    const int ready =
        poll(waits.data(), waits.size(), static_cast<int>((left + 999) / 1000));
    for (size_t i = 1; ready > 0 && i < waits.size(); ++i) {
      if (waits[i].revents != 0) Accept(waits[i].fd);
    }
    if (clock.NowMicros() < next_look) continue;
    const int64_t begin = ThreadMicros();
    open_calls.Begin();
    for (const std::string& address : connections_->Look()) {
      connections_->SetCalls(address, open_calls.Of(address));
    }
    next_look = clock.NowMicros() +
                std::clamp(kPausesPerLook * (ThreadMicros() - begin),
                           kPauseMicros, kLongestPauseMicros);
  }
}

void PeerPort::Accept(int listener) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    UniqueFd fd(
        accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.ok()) {
      if (errno == EMFILE || errno == ENFILE) Refuse(listener);
      return;
    }
    const std::string address = AddressOfPeer(fd.get());
    UniqueFd second(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    if (address.empty() || !second.ok()) continue;  // gone, or no file is free
    const int yes = 1;
    // Closes a connection whose peer acknowledges nothing for this long, as
    // gRPC does for its own connections.
    const auto silence_ms = static_cast<unsigned int>(
        absl::ToInt64Milliseconds(kServersKeepAlive.timeout));
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms,
               sizeof(silence_ms));
    connections_->Open(address, std::make_unique<TcpSocket>(std::move(second)));
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
        connection;
    connection.listener_fd = listener;
    connection.fd = fd.Release();
    acceptor_->HandleNewConnection(&connection);
  }
}

// Without this, the client would wait in the queue, and the thread would try to
// accept it again and again.
void PeerPort::Refuse(int listener) {
  spare_ = UniqueFd();
  { const UniqueFd refused(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)); }
  spare_ = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace tributary
