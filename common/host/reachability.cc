// SPDX-License-Identifier: Apache-2.0
#include "common/host/reachability.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"
#include "common/host/address.h"

namespace tributary {
namespace {

// Connects to one of the host's addresses. Returns errno, or 0 on success.
int ConnectError(const addrinfo& found, absl::Duration timeout) {
  const UniqueFd fd(
      socket(found.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return errno;
  if (connect(fd.get(), found.ai_addr, found.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wait = {.fd = fd.get(), .events = POLLOUT, .revents = 0};
  const int ready =
      poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (ready <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    return errno;
  }
  return error;
}

}  // namespace

std::string WhyNobodyAnswers(absl::string_view address,
                             absl::Duration timeout) {
  const std::string host(LookupHostOf(address));
  const std::string port(address.substr(address.rfind(':') + 1));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return absl::StrCat("cannot look up ", host, ": ", gai_strerror(error));
  }
  const int error = ConnectError(*found, timeout);
  freeaddrinfo(found);
  switch (error) {
    case 0:
      return "";
    case ECONNREFUSED:
      return kNobodyListens;
    case ETIMEDOUT:
      return "that host does not answer";
    default:
      return std::strerror(error);
  }
}

}  // namespace tributary
