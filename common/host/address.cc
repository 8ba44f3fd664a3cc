// SPDX-License-Identifier: Apache-2.0
#include "common/host/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"

namespace tributary {

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

absl::Status CheckAddress(absl::string_view address) {
  if (const size_t scheme = address.find("://");
      scheme != absl::string_view::npos) {
    absl::string_view bare = address.substr(scheme + 3);
    bare = bare.substr(0, bare.find('/'));
    return absl::InvalidArgumentError(absl::StrCat(
        "address must be HOST:PORT without ", address.substr(0, scheme + 3),
        bare.find(':') == absl::string_view::npos
            ? ""
            : absl::StrCat(", as in ", bare),
        ", got \"", address, "\""));
  }
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 || address.size() > 256 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return absl::InvalidArgumentError(
        absl::StrCat("address must be HOST:PORT, got \"", address, "\""));
  }
  // The last number may be a port or a part of the address.
  const absl::string_view host = address.substr(0, colon);
  if (absl::StrContains(host, ':') &&
      (host.front() != '[' || host.back() != ']')) {
    return absl::InvalidArgumentError(
        absl::StrCat("an IPv6 address wants brackets: [", host, "]",
                     address.substr(colon), ", got \"", address, "\""));
  }
  if (port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("the port of ", address, " is too large: at most 65535"));
  }
  return absl::OkStatus();
}

absl::string_view HostOf(absl::string_view address) {
  return address.substr(0, address.rfind(':'));
}

absl::string_view LookupHostOf(absl::string_view address) {
  const absl::string_view host = HostOf(address);
  const bool bracketed =
      host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

bool IsLoopback(absl::string_view address) {
  const std::string host(LookupHostOf(address));
  in_addr ipv4{};
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) {
    return ntohl(ipv4.s_addr) >> 24 == 127;
  }
  return host == "localhost" || host == "::1";
}

std::string ReachableAddress(absl::string_view listen, int port) {
  const absl::string_view host = HostOf(listen);
  if (host != "0.0.0.0" && host != "[::]" && host != "::" && !host.empty()) {
    return absl::StrCat(host, ":", port);
  }
  return absl::StrCat(HostName(), ":", port);
}

absl::StatusOr<std::string> LocalHostTowards(absl::string_view address) {
  const std::string host(LookupHostOf(address));
  const std::string port(address.substr(address.rfind(':') + 1));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot look up ", host, ": ", gai_strerror(error)));
  }
  // Connecting a datagram socket sends nothing; the kernel only selects a
  // route.
  const UniqueFd fd(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = {};
  socklen_t size = sizeof(own);
  char text[NI_MAXHOST] = {};
  const bool ok =
      fd.get() >= 0 &&
      connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
      getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof(text),
                  nullptr, 0, NI_NUMERICHOST) == 0;
  freeaddrinfo(found);
  if (!ok) {
    return absl::UnavailableError(
        absl::StrCat("there is no way to ", address, " from this machine"));
  }
  return std::string(text);
}

}  // namespace tributary
