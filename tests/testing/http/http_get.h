// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tributary::testing {

struct HttpReply {
  int code = 0;         // 0: no connection, or no answer in ten seconds
  std::string headers;  // as received, without the status line
  std::string body;
};

// Requests `path` from 127.0.0.1:port.
HttpReply HttpGet(int port, const std::string& path,
                  const std::string& method = "GET");

// Sends these bytes unchanged and returns everything received.
std::string HttpRaw(int port, const std::string& request);

}  // namespace tributary::testing
