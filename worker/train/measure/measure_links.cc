// SPDX-License-Identifier: Apache-2.0
#include "worker/train/measure/measure_links.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "common/host/address.h"
#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// A request is one letter and a number of eight bytes, least significant first.
// e: the server answers one byte. u: the server receives `number` bytes, then
// answers one byte. d: the server sends `number` bytes.
constexpr size_t kRequestBytes = 9;
constexpr uint64_t kMostBytes = uint64_t{1} << 32;
constexpr size_t kChunk = 256 * 1024;
constexpr int kRoundTrips = 50;
constexpr absl::Duration kLongestPoll = absl::Hours(1);

double Now() { return static_cast<double>(Clock::Real().NowMicros()) * 1e-6; }

absl::Status SystemError(const std::string& what) {
  // The error of a socket's own timeout.
  if (errno == EAGAIN || errno == EINPROGRESS) errno = ETIMEDOUT;
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

void SetTimeouts(int fd, absl::Duration silence) {
  const timeval most = absl::ToTimeval(silence);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool SendAll(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReceiveAll(int fd, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t received = recv(fd, at, bytes, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received == 0) errno = ECONNRESET;
    if (received <= 0) return false;
    at += received;
    bytes -= static_cast<size_t>(received);
  }
  return true;
}

// Sends `bytes` zero bytes.
bool SendNothing(int fd, uint64_t bytes) {
  static const auto* const zeros = new std::vector<char>(kChunk);
  for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, kChunk)) {
    if (!SendAll(fd, zeros->data(), std::min<uint64_t>(bytes, kChunk))) {
      return false;
    }
  }
  return true;
}

bool Swallow(int fd, uint64_t bytes) {
  std::vector<char> chunk(kChunk);
  for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, kChunk)) {
    if (!ReceiveAll(fd, chunk.data(), std::min<uint64_t>(bytes, kChunk))) {
      return false;
    }
  }
  return true;
}

class TcpProbeServer final : public LinkProbeServer {
 public:
  TcpProbeServer(UniqueFd listener, UniqueFd stop, int port,
                 absl::Duration silence)
      : listener_(std::move(listener)),
        stop_(std::move(stop)),
        port_(port),
        silence_(silence) {}

  int port() const override { return port_; }
  void Stop() override {
    const uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof(one));
  }
  void Serve(absl::Duration limit) override {
    const absl::Duration deadline = SteadyNow() + limit;
    while (SteadyNow() < deadline) {
      std::array<pollfd, 2> fds = {
          {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
      const int64_t left_ms = absl::ToInt64Milliseconds(std::min(
          deadline - SteadyNow() + absl::Milliseconds(1), kLongestPoll));
      if (poll(fds.data(), fds.size(), static_cast<int>(left_ms)) < 0 &&
          errno != EINTR) {
        return;
      }
      if (fds[1].revents != 0) return;
      if (fds[0].revents == 0) continue;
      const UniqueFd caller(accept(listener_.get(), nullptr, nullptr));
      if (caller.ok()) Answer(caller.get());
    }
  }

 private:
  void Answer(int fd) const {
    SetTimeouts(fd, silence_);
    std::array<unsigned char, kRequestBytes> request;
    while (ReceiveAll(fd, request.data(), request.size())) {
      uint64_t bytes = 0;
      for (int i = 7; i >= 0; --i) bytes = bytes << 8 | request[1 + i];
      if (bytes > kMostBytes) return;
      const char done = '.';
      switch (request[0]) {
        case 'e':
          if (!SendAll(fd, &done, 1)) return;
          break;
        case 'u':
          if (!Swallow(fd, bytes) || !SendAll(fd, &done, 1)) return;
          break;
        case 'd':
          if (!SendNothing(fd, bytes)) return;
          break;
        default:
          return;
      }
    }
  }

  const UniqueFd listener_;
  const UniqueFd stop_;
  const int port_;
  const absl::Duration silence_;
};

// Resolves `address` and calls use(address, socket) until one succeeds.
template <typename Use>
absl::Status ForAddress(const std::string& address, bool passive, Use use) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(address));
  const std::string host(LookupHostOf(address));
  const std::string port = address.substr(address.rfind(':') + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(host.c_str(), port.c_str(), &hints, &found)) {
    return absl::UnavailableError(
        absl::StrCat("no address of ", address, ": ", gai_strerror(error)));
  }
  absl::Status status = absl::UnavailableError("no address");
  for (addrinfo* one = found; one != nullptr && !status.ok();
       one = one->ai_next) {
    UniqueFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    status = fd.ok() ? use(*one, std::move(fd)) : SystemError("no socket");
  }
  freeaddrinfo(found);
  return status;
}

// The client's end of a measurement.
class SpeedTestCaller {
 public:
  SpeedTestCaller(std::string address, absl::Duration silence)
      : address_(std::move(address)), silence_(silence) {}

  absl::Status Connect() {
    return ForAddress(
        address_, /*passive=*/false, [&](const addrinfo& one, UniqueFd fd) {
          SetTimeouts(fd.get(), silence_);
          if (connect(fd.get(), one.ai_addr, one.ai_addrlen) != 0) {
            return SystemError(absl::StrCat("cannot reach ", address_));
          }
          fd_ = std::move(fd);
          return absl::OkStatus();
        });
  }

  // Seconds from the request until the last byte of the answer.
  absl::StatusOr<double> Time(char what, uint64_t bytes) {
    std::array<unsigned char, kRequestBytes> request;
    request[0] = static_cast<unsigned char>(what);
    for (int i = 0; i < 8; ++i) {
      request[1 + i] = static_cast<unsigned char>(bytes >> (8 * i));
    }
    char done = 0;
    const double begin = Now();
    const bool ok = SendAll(fd_.get(), request.data(), request.size()) &&
                    (what != 'u' || SendNothing(fd_.get(), bytes)) &&
                    (what == 'd' ? Swallow(fd_.get(), bytes)
                                 : ReceiveAll(fd_.get(), &done, 1));
    if (!ok) {
      return SystemError(
          absl::StrCat("the probe at ", address_, " does not answer"));
    }
    return Now() - begin;
  }

  // Bytes per second in one direction, measured for about `seconds`.
  absl::StatusOr<double> Rate(char what, double seconds, double round_trip) {
    // Doubles the transfer until it takes long enough. Then counts only a
    // second transfer of that size, because by then an idle link's burst
    // allowance is used up.
    for (uint64_t bytes = 256 * 1024;; bytes *= 2) {
      TRIBUTARY_ASSIGN_OR_RETURN(const double took, Time(what, bytes));
      if (took < seconds / 2 && bytes * 2 <= kMostBytes) continue;
      TRIBUTARY_ASSIGN_OR_RETURN(const double again, Time(what, bytes));
      return static_cast<double>(bytes) / std::max(again - round_trip, 1e-6);
    }
  }

 private:
  const std::string address_;
  const absl::Duration silence_;
  UniqueFd fd_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LinkProbeServer>> LinkProbeServer::Start(
    const std::string& listen_on, absl::Duration silence) {
  std::unique_ptr<LinkProbeServer> server;
  const absl::Status status = ForAddress(
      listen_on, /*passive=*/true, [&](const addrinfo& one, UniqueFd fd) {
        const int on = 1;
        setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        sockaddr_storage bound{};
        socklen_t length = sizeof(bound);
        UniqueFd stop(eventfd(0, EFD_CLOEXEC));
        if (!stop.ok() || bind(fd.get(), one.ai_addr, one.ai_addrlen) != 0 ||
            listen(fd.get(), /*backlog=*/4) != 0 ||
            getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound),
                        &length) != 0) {
          return SystemError(absl::StrCat("cannot listen on ", listen_on));
        }
        const in_port_t port =
            bound.ss_family == AF_INET6
                ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                : reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
        server = std::make_unique<TcpProbeServer>(
            std::move(fd), std::move(stop), ntohs(port), silence);
        return absl::OkStatus();
      });
  TRIBUTARY_RETURN_IF_ERROR(status);
  return server;
}

absl::StatusOr<LinkMeasurement> MeasureLink(const std::string& address,
                                            double seconds,
                                            absl::Duration silence) {
  SpeedTestCaller caller(address, silence);
  TRIBUTARY_RETURN_IF_ERROR(caller.Connect());
  std::vector<double> round_trips;
  for (int i = 0; i < kRoundTrips; ++i) {
    TRIBUTARY_ASSIGN_OR_RETURN(const double took, caller.Time('e', 0));
    round_trips.push_back(took);
  }
  std::sort(round_trips.begin(), round_trips.end());
  const double round_trip = round_trips[round_trips.size() / 2];
  TRIBUTARY_ASSIGN_OR_RETURN(const double up,
                             caller.Rate('u', seconds, round_trip));
  TRIBUTARY_ASSIGN_OR_RETURN(const double down,
                             caller.Rate('d', seconds, round_trip));
  return LinkMeasurement{std::min(up, down), round_trip / 2};
}

}  // namespace tributary
