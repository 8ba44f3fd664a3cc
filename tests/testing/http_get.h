#pragma once

#include <string>

namespace tributary::testing {

struct HttpReply {
  int code = 0;         // 0: no connection, or no answer in ten seconds
  std::string headers;  // as they came, without the status line
  std::string body;
};

// Asks 127.0.0.1:port for `path`.
HttpReply HttpGet(int port, const std::string& path,
                  const std::string& method = "GET");

// Sends these bytes as they are and returns all that comes back.
std::string HttpRaw(int port, const std::string& request);

}  // namespace tributary::testing
