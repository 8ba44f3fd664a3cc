// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program (LD_PRELOAD), routes its TCP connections through the
// TcpProxy whose control socket is TRIBUTARY_PROXY. It reports to the proxy on
// which ports the program listens, and asks it for a port whenever the program
// connects. The program's name consists of its file and --index: worker-1,
// server-0, coordinator. Without a proxy it changes nothing.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Connect = int (*)(int, const sockaddr*, socklen_t);
using Listen = int (*)(int, int);

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

std::string OwnName() {
  std::ifstream file("/proc/self/cmdline");
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> words;
  for (size_t at = 0; at < all.size(); at += words.back().size() + 1) {
    words.push_back(all.c_str() + at);
  }
  if (words.empty()) return "nobody";
  std::string name = words[0].substr(words[0].rfind('/') + 1);
  if (name == "tributary") return "coordinator";
  if (name.rfind("tributary-", 0) == 0) name = name.substr(10);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--index") name += "-" + words[i + 1];
  }
  return name;
}

// The number that the proxy answers to a line; -1: no answer.
int Ask(const std::string& line) {
  const char* path = getenv("TRIBUTARY_PROXY");
  if (path == nullptr) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof(address.sun_path)) return -1;
  strcpy(address.sun_path, path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int answer = -1;
  static const auto connect_to = Next<Connect>("connect");
  if (connect_to(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
          0 &&
      send(fd, line.data(), line.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(line.size())) {
    char text[16] = {};
    size_t got = 0;
    while (got < sizeof(text) - 1) {
      const ssize_t n = read(fd, text + got, sizeof(text) - 1 - got);
      if (n <= 0) break;
      got += static_cast<size_t>(n);
    }
    if (got > 0) answer = atoi(text);
  }
  close(fd);
  return answer;
}

bool IsTcp(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_STREAM;
}

// Host and port in the proxy's format; "" for another address family.
std::string Text(const sockaddr* address) {
  char host[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
    return std::string(host) + " " + std::to_string(ntohs(v4->sin_port));
  }
  if (address->sa_family != AF_INET6) return "";
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
    inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, host, sizeof(host));
  } else if (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) {
    strcpy(host, "127.0.0.1");
  } else {
    return "";
  }
  return std::string(host) + " " + std::to_string(ntohs(v6->sin6_port));
}

}  // namespace

extern "C" int connect(int fd, const sockaddr* address, socklen_t size) {
  static const auto next = Next<Connect>("connect");
  const int before = errno;
  const std::string target = address == nullptr ? "" : Text(address);
  if (target.empty() || !IsTcp(fd)) return next(fd, address, size);
  const int port = Ask("connect " + OwnName() + " " + target + "\n");
  errno = before;
  if (port <= 0) return next(fd, address, size);
  const auto wire_port = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET) {
    sockaddr_in proxy = *reinterpret_cast<const sockaddr_in*>(address);
    proxy.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy.sin_port = wire_port;
    return next(fd, reinterpret_cast<sockaddr*>(&proxy), sizeof(proxy));
  }
  sockaddr_in6 proxy = *reinterpret_cast<const sockaddr_in6*>(address);
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &proxy.sin6_addr);
  proxy.sin6_port = wire_port;
  return next(fd, reinterpret_cast<sockaddr*>(&proxy), sizeof(proxy));
}

extern "C" int listen(int fd, int backlog) {
  static const auto next = Next<Listen>("listen");
  const int result = next(fd, backlog);
  const int after = errno;
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (result == 0 && IsTcp(fd) &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0) {
    int port = 0;
    if (own.ss_family == AF_INET) {
      port = ntohs(reinterpret_cast<sockaddr_in*>(&own)->sin_port);
    } else if (own.ss_family == AF_INET6) {
      port = ntohs(reinterpret_cast<sockaddr_in6*>(&own)->sin6_port);
    }
    if (port > 0) {
      Ask("listen " + OwnName() + " " + std::to_string(port) + "\n");
    }
  }
  errno = after;
  return result;
}
