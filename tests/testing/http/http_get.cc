// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/http/http_get.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>

namespace tributary::testing {

std::string HttpRaw(int port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const timeval patience{10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
          0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    shutdown(fd, SHUT_WR);  // no more bytes, even if more were announced
    char buffer[4096];
    for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(n));
    }
  }
  close(fd);
  return answer;
}

HttpReply HttpGet(int port, const std::string& path,
                  const std::string& method) {
  const std::string answer =
      HttpRaw(port, method + " " + path +
                        " HTTP/1.1\r\nHost: localhost\r\n"
                        "Connection: close\r\n\r\n");
  HttpReply reply;
  const size_t first = answer.find("\r\n");
  const size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos ||
      sscanf(answer.c_str(), "HTTP/1.1 %d", &reply.code) != 1) {
    return reply;
  }
  reply.headers = answer.substr(first + 2, end - first);
  reply.body = answer.substr(end + 4);
  return reply;
}

}  // namespace tributary::testing
