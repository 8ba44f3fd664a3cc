// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct MHD_Daemon;

namespace tributary {

struct HttpAnswer {
  int code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Further headers, by name.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Who may read the pages. An address of this machine alone may be in clear text
// and open; another one wants token and TLS, or `insecure`.
struct PageAccess {
  // Empty: none is asked for. A caller shows it as a bearer token (RFC 6750)
  // or, as browsers do, as the password of basic authentication (RFC 7617).
  std::string token;
  std::string certificate;  // PEM; empty: HTTP in clear text
  std::string key;          // PEM; secret
  bool insecure = false;
};

// Whether the value of an Authorization header shows this token.
bool ShowsToken(absl::string_view authorization, absl::string_view token);

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
    PageAccess access;
    // Answered without a token, with the code and "ok" or "not ok" alone.
    std::string open_page = "/healthz";
  };

  // InvalidArgument: not host:port, or open to other machines without what
  // PageAccess wants. Unavailable: cannot listen there; the text
  // names the address and the system's error.
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(Options options);
  // Returns when no page is being served any more.
  ~HttpListener();

  int port() const { return port_; }

  // The answer to a request. `authorization`: the header's value.
  HttpAnswer Answer(const std::string& method, const std::string& path,
                    absl::string_view authorization = "") const;

 private:
  explicit HttpListener(Options options);

  const Options options_;
  MHD_Daemon* daemon_ = nullptr;
  int port_ = 0;
};

}  // namespace tributary
