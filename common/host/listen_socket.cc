// SPDX-License-Identifier: Apache-2.0
#include "common/host/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "common/host/address.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Lookup(const std::string& host,
                                 const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return absl::UnavailableError(gai_strerror(error));
  }
  return Addresses(found, freeaddrinfo);
}

// Returns an invalid descriptor, and sets errno, when it cannot listen.
UniqueFd Bind(const addrinfo& address, int port, int backlog) {
  UniqueFd fd(
      socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1, no = 0;
  sockaddr_storage at{};
  memcpy(&at, address.ai_addr, address.ai_addrlen);
  auto* const ipv6 = reinterpret_cast<sockaddr_in6*>(&at);
  const bool any_ipv6 = address.ai_family == AF_INET6 &&
                        IN6_IS_ADDR_UNSPECIFIED(&ipv6->sin6_addr);
  if (port != 0) {
    // The port is at the same place in IPv4 and IPv6 addresses.
    ipv6->sin6_port = htons(static_cast<uint16_t>(port));
  }
  const bool listens =
      fd.ok() &&
      setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      (!any_ipv6 ||
       setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) == 0) &&
      bind(fd.get(), reinterpret_cast<sockaddr*>(&at), address.ai_addrlen) ==
          0 &&
      listen(fd.get(), backlog) == 0;
  const int error = errno;
  UniqueFd bound = listens ? std::move(fd) : UniqueFd();
  errno = error;
  return bound;
}

// Binds all addresses to one port. Returns 0, or errno.
int BindAll(const addrinfo& addresses, int backlog,
            std::vector<UniqueFd>* sockets) {
  sockets->clear();
  int port = 0;  // of the first
  for (const addrinfo* one = &addresses; one != nullptr; one = one->ai_next) {
    UniqueFd fd = Bind(*one, port, backlog);
    const int error = errno;
    if (!fd.ok()) {
      // A name may have addresses of a kind that the machine does not use.
      if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL) continue;
      return error;
    }
    port = PortOf(fd.get());
    sockets->push_back(std::move(fd));
  }
  return sockets->empty() ? EADDRNOTAVAIL : 0;
}

}  // namespace

absl::StatusOr<std::vector<UniqueFd>> ListenOn(const std::string& address,
                                               int backlog) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(address));
  const std::string host(LookupHostOf(address));
  const std::string port(address.substr(address.rfind(':') + 1));
  std::vector<UniqueFd> sockets;
  if (host == "0.0.0.0" || host == "::") {
    // One socket for IPv4 and IPv6; a machine without IPv6 gets one for IPv4.
    if (const auto any = Lookup("::", port); any.ok()) {
      if (UniqueFd fd = Bind(**any, 0, backlog); fd.ok()) {
        sockets.push_back(std::move(fd));
        return sockets;
      }
    }
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const Addresses found, Lookup(host, port));
  // A port that is free at one address may be taken at another.
  constexpr int kTries = 16;
  int error = BindAll(*found, backlog, &sockets);
  for (int i = 1; port == "0" && error == EADDRINUSE && i < kTries; ++i) {
    error = BindAll(*found, backlog, &sockets);
  }
  if (error != 0) return absl::UnavailableError(std::strerror(error));
  return sockets;
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace tributary
