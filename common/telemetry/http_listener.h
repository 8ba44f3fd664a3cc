// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

struct MHD_Daemon;

namespace tributary {

struct HttpAnswer {
  int code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Further headers, by name.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Answers GET and HEAD for a few fixed paths, on one thread of its own. Other
// paths get 404, other methods 405. The number of connections, the size of a
// request and the time to send it are limited; a connection that exceeds a
// limit is closed.
class HttpListener {
 public:
  using Page = std::function<HttpAnswer()>;
  struct Options {
    std::string listen;                 // host:port; port 0: any free one
    std::map<std::string, Page> pages;  // by path; called one at a time
  };

  // InvalidArgument: not host:port. Unavailable: cannot listen there; the text
  // names the address and the system's error.
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(Options options);
  // Returns when no page is being served any more.
  ~HttpListener();

  int port() const { return port_; }

  // The answer to a request.
  HttpAnswer Answer(const std::string& method, const std::string& path) const;

 private:
  explicit HttpListener(Options options);

  const Options options_;
  MHD_Daemon* daemon_ = nullptr;
  int port_ = 0;
};

}  // namespace tributary
