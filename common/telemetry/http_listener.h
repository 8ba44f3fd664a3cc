// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "common/security/certificate_authority.h"
#include "common/telemetry/page_connections.h"

struct MHD_Daemon;

namespace tributary {

struct HttpAnswer {
  int code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Further headers, by name.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// The reader of a page, as far as the request describes it.
struct PageReader {
  std::string host;
  int port = 0;  // of the connection, which a reader may keep open
  std::string user_agent;
  // How often the reader reads, if it says so, as Prometheus does for the list
  // of targets (X-Prometheus-Refresh-Interval-Seconds); else zero.
  absl::Duration refresh;
};

// Who may read the pages. A port that only this machine reaches may be open and
// in clear text; any other needs a token and TLS, or `insecure`.
struct PageAccess {
  // Callers show the token as a bearer token (RFC 6750) or, as browsers do, as
  // the password of basic authentication (RFC 7617). Empty: no token is needed.
  std::string token;
  Credential own;  // an empty certificate: HTTP in clear text
  bool insecure = false;
  // Reads `own` anew, from where it came, every `renew_every`; null: it never
  // changes. New connections get the newest certificate; existing ones go on.
  std::function<absl::StatusOr<Credential>()> renew;
  absl::Duration renew_every = absl::Seconds(5);
  // A second port, which only this machine reaches and which answers only
  // /healthz, so that readers of the pages cannot keep a health check out.
  // host:port; empty: none.
  std::string health_listen;
  // Returns when this process's current certificate expires, for the metrics;
  // null: it has no certificate.
  std::function<absl::StatusOr<absl::Time>()> certificate_end = nullptr;
};

// Whether the value of an Authorization header shows this token.
bool ShowsToken(absl::string_view authorization, absl::string_view token);

// Whether a page without a token answers a request whose Host header is `host`:
// an address, "localhost" or `own`. Other names are refused, because a web page
// can make its own name point here (DNS rebinding).
bool IsOwnHost(absl::string_view host, absl::string_view own);

// Answers GET and HEAD for a few fixed paths, on one thread of its own. Other
// paths get 404, other methods 405, and without a token other hosts 421
// (IsOwnHost). The number of connections, the size of a request and the time to
// send it are limited (PageConnections); a connection that exceeds a limit is
// closed. A second thread closes late connections and renews the certificate.
class HttpListener {
 public:
  using Page = std::function<HttpAnswer()>;
  struct Options {
    std::string listen;                 // host:port; port 0: any free one
    std::map<std::string, Page> pages;  // by path; called one at a time
    // Called before a page is made, one at a time with the pages; or null.
    std::function<void(const std::string& path, const PageReader& reader)>
        on_read;
    PageAccess access;
    // The page that answers without a token, with only the code and "ok" or
    // "not ok".
    std::string open_page = "/healthz";
    PageConnections::Limits limits = {};
    const Clock* clock = &Clock::Real();
  };

  // InvalidArgument: not host:port, or open to other machines without what
  // PageAccess wants. Unavailable: cannot listen there; the text
  // names the address and the system's error.
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(Options options);
  // Returns when no page is being served any more.
  ~HttpListener();

  int port() const { return port_; }

  // The answer to a request. `authorization` and `host`: values of headers;
  // empty: there is no such header.
  HttpAnswer Answer(const std::string& method, const std::string& path,
                    absl::string_view authorization = "",
                    absl::string_view host = "",
                    const PageReader& reader = {}) const;

 private:
  class Callbacks;  // of libmicrohttpd
  // A daemon of libmicrohttpd, with a thread of its own.
  struct Daemon {
    HttpListener* listener = nullptr;
    uint64_t number = 0;  // later ones have higher numbers
    MHD_Daemon* handle = nullptr;
  };

  explicit HttpListener(Options options);

  // Unavailable: the daemon does not start, for example because the certificate
  // and its key do not fit.
  absl::StatusOr<std::unique_ptr<Daemon>> StartDaemon(const Credential& own);
  // Shuts the connections of this daemon and of earlier ones, waits until they
  // have ended, and ends the daemon. Null: does nothing.
  void Stop(std::unique_ptr<Daemon> daemon);
  void Tend();  // the second thread
  // Shows the newest certificate: libmicrohttpd cannot change a daemon's
  // certificate, so a new daemon replaces the one that listens.
  void Renew();
  void Retire();
  HttpAnswer Make(const std::string& path, const Page& page,
                  const PageReader& reader) const;

  const Options options_;
  PageConnections connections_;
  std::string own_host_;  // the host by which other machines reach this port
  Credential shown_;
  UniqueFd socket_;  // listens; each daemon has a duplicate
  int port_ = 0;
  uint64_t daemons_ = 0;  // so far
  std::unique_ptr<Daemon> daemon_;
  // This daemon accepts no new connections, but may still answer on old ones.
  std::unique_ptr<Daemon> retired_;

  mutable absl::Mutex pages_mu_;  // held while a page is made
  absl::Mutex mu_;
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // the last, because it uses the others
};

}  // namespace tributary
