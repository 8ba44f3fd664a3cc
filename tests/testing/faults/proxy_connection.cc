// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/faults/proxy_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"

namespace tributary::testing {

ProxyConnection::ProxyConnection(std::string from, std::string to,
                                 std::string target, int accepted,
                                 int connected)
    : from(std::move(from)),
      to(std::move(to)),
      target(std::move(target)),
      fds_{accepted, connected},
      pipes_{Pipe(/*client=*/true), Pipe(/*client=*/false)} {
  for (int fd : fds_) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    fcntl(fd, F_SETFL, O_NONBLOCK);
  }
}

ProxyConnection::~ProxyConnection() {
  for (int fd : fds_) close(fd);
}

bool ProxyConnection::WantsToRead(bool back) const {
  const Pipe& way = pipe(back);
  return !dead_ && !way.ended && way.held < kMostHeld;
}

bool ProxyConnection::WantsToWrite(bool back, int64_t now_ms) const {
  const int64_t release = NextRelease(back);
  return !dead_ && release >= 0 && release <= now_ms;
}

int64_t ProxyConnection::NextRelease(bool back) const {
  const Pipe& way = pipe(back);
  return way.pieces.empty() ? -1 : way.pieces.front().release_ms;
}

void ProxyConnection::Take(bool back, std::string bytes, int64_t release_ms) {
  Pipe& way = pipe(back);
  way.so_far.append(bytes, 0, kMostKept - way.so_far.size());
  way.held += bytes.size();
  way.pieces.push_back({std::move(bytes), release_ms});
}

void ProxyConnection::Write(bool back, int64_t now_ms) {
  Pipe& way = pipe(back);
  while (WantsToWrite(back, now_ms)) {
    const std::string& bytes = way.pieces.front().bytes;
    const ssize_t n = send(sink(back), bytes.data() + way.written,
                           bytes.size() - way.written, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return Reset();
    if (n <= 0) return;
    way.written += static_cast<size_t>(n);
    way.held -= static_cast<size_t>(n);
    if (way.written < bytes.size()) return;
    way.written = 0;
    way.pieces.pop_front();
  }
}

void ProxyConnection::Silence() {
  silent_ = true;
  for (Pipe& way : pipes_) {
    way.pieces.clear();
    way.held = 0;
  }
}

void ProxyConnection::PassOnEnd(bool back) {
  Pipe& way = pipe(back);
  if (silent_ || !way.ended || way.shut || !way.pieces.empty()) return;
  way.shut = true;
  shutdown(sink(back), SHUT_WR);
  if (pipe(!back).shut) dead_ = true;
}

void ProxyConnection::Reset() {
  if (dead_) return;
  dead_ = true;
  // Makes close() send a reset instead of an orderly end.
  const linger now = {.l_onoff = 1, .l_linger = 0};
  for (int fd : fds_) setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

int ListenSomewhere(int* port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, any, size) != 0 || listen(fd, 256) != 0 ||
      getsockname(fd, any, &size) != 0) {
    close(fd);
    return -1;
  }
  fcntl(fd, F_SETFL, O_NONBLOCK);
  *port = ntohs(address.sin_port);
  return fd;
}

int ConnectTo(const std::string& target) {
  const size_t space = target.find(' ');
  int port = 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (space == std::string::npos ||
      !absl::SimpleAtoi(target.substr(space + 1), &port) ||
      inet_pton(AF_INET, target.substr(0, space).c_str(), &address.sin_addr) !=
          1) {
    return -1;
  }
  address.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
      0) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace tributary::testing
