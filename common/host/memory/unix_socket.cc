// SPDX-License-Identifier: Apache-2.0
#include "common/host/memory/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int kSocketBacklog = 64;
constexpr int kFlags = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

absl::Status Failed(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

struct Address {
  sockaddr_un value = {};
  socklen_t size = 0;
};

absl::StatusOr<Address> ToAddress(const std::string& text) {
  Address address;
  address.value.sun_family = AF_UNIX;
  if (text.empty() || text.size() >= sizeof(address.value.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "socket \"", text, "\" has ", text.size(), " bytes, wanted 1 to ",
        sizeof(address.value.sun_path) - 1));
  }
  std::memcpy(address.value.sun_path, text.data(), text.size());
  address.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
  if (text[0] == '@') {
    address.value.sun_path[0] = '\0';
  } else {
    ++address.size;  // a path ends with a zero
  }
  return address;
}

const sockaddr* Raw(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.value);
}

absl::Status Await(const UniqueFd& socket, short events,
                   absl::Duration timeout) {
  pollfd wait = {.fd = socket.get(), .events = events, .revents = 0};
  const int ready =
      poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (ready > 0) return absl::OkStatus();
  if (ready < 0 && errno != EINTR) return Failed("poll");
  return absl::DeadlineExceededError(
      absl::StrCat("no message within ", absl::FormatDuration(timeout)));
}

// Room for the control data of one descriptor.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

}  // namespace

absl::StatusOr<UniqueFd> ListenUnix(const std::string& address) {
  TRIBUTARY_ASSIGN_OR_RETURN(const Address to, ToAddress(address));
  UniqueFd listener(socket(AF_UNIX, kFlags, 0));
  if (!listener.ok()) return Failed("socket");
  if (bind(listener.get(), Raw(to), to.size) != 0 ||
      listen(listener.get(), kSocketBacklog) != 0) {
    return Failed(absl::StrCat("cannot listen on ", address));
  }
  return listener;
}

UniqueFd AcceptUnix(const UniqueFd& listener) {
  return UniqueFd(
      accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

absl::StatusOr<uid_t> PeerUser(const UniqueFd& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Failed("SO_PEERCRED");
  }
  return peer.uid;
}

bool IsAbandonedUnix(const std::string& path) {
  const absl::StatusOr<Address> to = ToAddress(path);
  struct stat file {};
  // connect() also fails with ECONNREFUSED for a file that is not a socket.
  if (!to.ok() || lstat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) {
    return false;
  }
  const UniqueFd connection(socket(AF_UNIX, kFlags, 0));
  return connection.ok() &&
         connect(connection.get(), Raw(*to), to->size) != 0 &&
         errno == ECONNREFUSED;
}

absl::StatusOr<UniqueFd> ConnectUnix(const std::string& address) {
  TRIBUTARY_ASSIGN_OR_RETURN(const Address to, ToAddress(address));
  UniqueFd connection(socket(AF_UNIX, kFlags, 0));
  if (!connection.ok()) return Failed("socket");
  if (connect(connection.get(), Raw(to), to.size) != 0) {
    return Failed(absl::StrCat("cannot connect to ", address));
  }
  return connection;
}

absl::Status SendUnix(const UniqueFd& socket, const std::string& bytes,
                      int descriptor, absl::Duration timeout) {
  TRIBUTARY_RETURN_IF_ERROR(Await(socket, POLLOUT, timeout));
  iovec part = {.iov_base = const_cast<char*>(bytes.data()),
                .iov_len = bytes.size()};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  const ssize_t sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) return Failed("sendmsg");
  return absl::OkStatus();
}

absl::StatusOr<UnixMessage> ReceiveUnix(const UniqueFd& socket,
                                        absl::Duration timeout) {
  TRIBUTARY_RETURN_IF_ERROR(Await(socket, POLLIN, timeout));
  UnixMessage received;
  received.bytes.resize(kMaxUnixMessageBytes);
  iovec part = {.iov_base = received.bytes.data(),
                .iov_len = received.bytes.size()};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  const ssize_t size = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (size < 0) return Failed("recvmsg");
  // The kernel closes descriptors for which there was no room.
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
    received.descriptor = UniqueFd(descriptor);
  }
  if (size == 0) return absl::UnavailableError("the other side has gone");
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a message of more than ", kMaxUnixMessageBytes, " bytes"));
  }
  received.bytes.resize(static_cast<size_t>(size));
  return received;
}

}  // namespace tributary
