// SPDX-License-Identifier: Apache-2.0
// The only source that includes libmicrohttpd.
#include "common/telemetry/http_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/host/address.h"
#include "common/host/listen_socket.h"
#include "common/host/steady_waits.h"
#include "common/security/secret.h"
#include "common/status/printable.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Room for connections that were shut and are not closed yet.
constexpr size_t kShutConnections = 16;
constexpr unsigned kSilentSeconds = 15;
constexpr absl::Duration kLookEvery = absl::Milliseconds(200);
constexpr size_t kMaxPageRequestBytes = 16 << 10;
constexpr int kPageBacklog = 128;
// How long the connections of a daemon may take to end: a page that takes a
// while holds up the daemon's only thread.
constexpr absl::Duration kMostToEnd = absl::Seconds(10);

absl::Status CannotListen(const std::string& listen, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", listen, " for metrics: ", why));
}

// Two daemons may wait on this socket; only one of them gets a connection.
absl::StatusOr<UniqueFd> Listen(const std::string& listen) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(listen));
  auto sockets = ListenOn(listen, kPageBacklog);
  if (!sockets.ok()) return CannotListen(listen, sockets.status().message());
  return std::move(sockets->front());
}

absl::Status CheckOpen(const std::string& listen, const PageAccess& access) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(listen));
  const bool encrypted = !access.own.certificate.empty();
  const bool closed = encrypted && !access.token.empty();
  if (closed || access.insecure || IsLoopback(listen)) return absl::OkStatus();
  // `tributary train` makes its own certificates and has no --tls.
  return absl::InvalidArgumentError(absl::StrCat(
      "--metrics-listen ", listen, " is open to other machines: give ",
      encrypted ? "" : "--tls and ",
      "--metrics-token-file, or --insecure-metrics"));
}

// Drops libmicrohttpd's messages, such as those about clients that
// disconnected.
void OnLog(void*, const char*, va_list) {}

}  // namespace

bool IsOwnHost(absl::string_view host, absl::string_view own) {
  const bool brackets = absl::StartsWith(host, "[");
  const size_t colon = host.find(':', brackets ? host.find(']') : 0);
  const std::string name(host.substr(0, colon));
  if (colon != absl::string_view::npos &&
      !absl::c_all_of(host.substr(colon + 1), absl::ascii_isdigit)) {
    return false;
  }
  in_addr ipv4;
  in6_addr ipv6;
  const bool whole = brackets && name.back() == ']';
  const std::string inside = whole ? name.substr(1, name.size() - 2) : "";
  return inet_pton(AF_INET, name.c_str(), &ipv4) == 1 ||
         inet_pton(AF_INET6, inside.c_str(), &ipv6) == 1 ||
         absl::EqualsIgnoreCase(name, "localhost") ||
         (!own.empty() && absl::EqualsIgnoreCase(name, own));
}

bool ShowsToken(absl::string_view authorization, absl::string_view token) {
  if (absl::ConsumePrefix(&authorization, "Bearer ")) {
    return EqualSecrets(authorization, token);
  }
  std::string user_and_password;
  if (!absl::ConsumePrefix(&authorization, "Basic ") ||
      !absl::Base64Unescape(authorization, &user_and_password)) {
    return false;
  }
  absl::string_view password = user_and_password;
  const size_t colon = password.find(':');
  if (colon == absl::string_view::npos) return false;
  password.remove_prefix(colon + 1);
  return EqualSecrets(password, token);
}

// libmicrohttpd calls these on the thread of its daemon.
class HttpListener::Callbacks {
 public:
  // Called once with the headers, then for each piece of the body, which is
  // discarded, and finally for the answer.
  static MHD_Result OnRequest(void* self, MHD_Connection* connection,
                              const char* path, const char* method, const char*,
                              const char*, size_t* body_bytes, void** seen);
  static MHD_Result OnAccept(void* self, const sockaddr*, socklen_t) {
    const auto& daemon = *static_cast<Daemon*>(self);
    return daemon.listener->connections_.Admit(daemon.number) ? MHD_YES
                                                              : MHD_NO;
  }
  static void OnConnection(void* self, MHD_Connection* connection, void**,
                           MHD_ConnectionNotificationCode what) {
    const auto& daemon = *static_cast<Daemon*>(self);
    HttpListener& listener = *daemon.listener;
    const int fd = SocketOf(connection);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      return listener.connections_.End(fd);
    }
    const sockaddr* const peer = PeerOf(connection);
    listener.connections_.Begin(fd, peer == nullptr ? "" : PeerHost(*peer),
                                daemon.number);
  }
  static void OnCompleted(void* self, MHD_Connection* connection, void**,
                          MHD_RequestTerminationCode) {
    static_cast<Daemon*>(self)->listener->connections_.Answered(
        SocketOf(connection));
  }

 private:
  static int SocketOf(MHD_Connection* connection) {
    return MHD_get_connection_info(connection,
                                   MHD_CONNECTION_INFO_CONNECTION_FD)
        ->connect_fd;
  }
  // Null: the peer's address is not known.
  static const sockaddr* PeerOf(MHD_Connection* connection) {
    const MHD_ConnectionInfo* const peer =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return peer == nullptr ? nullptr : peer->client_addr;
  }
  static PageReader ReaderOn(MHD_Connection* connection) {
    PageReader reader;
    if (const sockaddr* const peer = PeerOf(connection)) {
      reader.host = PeerHost(*peer);
      reader.port = PortOf(*peer);
    }
    reader.user_agent =
        std::string(Header(connection, MHD_HTTP_HEADER_USER_AGENT));
    double seconds = 0;
    if (absl::SimpleAtod(
            Header(connection, "X-Prometheus-Refresh-Interval-Seconds"),
            &seconds) &&
        seconds > 0) {
      reader.refresh = absl::Seconds(seconds);
    }
    return reader;
  }
  static absl::string_view Header(MHD_Connection* connection,
                                  const char* name) {
    const char* const value =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value == nullptr ? "" : value;
  }
};

MHD_Result HttpListener::Callbacks::OnRequest(void* self,
                                              MHD_Connection* connection,
                                              const char* path,
                                              const char* method, const char*,
                                              const char*, size_t* body_bytes,
                                              void** seen) {
  static char mark;
  if (*seen == nullptr) {
    *seen = &mark;
    return MHD_YES;
  }
  if (*body_bytes > 0) {
    *body_bytes = 0;
    return MHD_YES;
  }
  HttpListener& listener = *static_cast<Daemon*>(self)->listener;
  listener.connections_.Asked(SocketOf(connection));
  const HttpAnswer answer = listener.Answer(
      method, path, Header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
      Header(connection, MHD_HTTP_HEADER_HOST), ReaderOn(connection));
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()),
      MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                          answer.content_type.c_str());
  for (const auto& [name, value] : answer.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  if (answer.code == MHD_HTTP_UNAUTHORIZED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                            "Basic realm=\"tributary\", charset=\"UTF-8\"");
  }
  if (answer.code == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result queued = MHD_queue_response(
      connection, static_cast<unsigned>(answer.code), response);
  MHD_destroy_response(response);
  return queued;
}

HttpListener::HttpListener(Options options)
    : options_(std::move(options)),
      connections_(options_.clock, options_.limits,
                   [](int fd) { shutdown(fd, SHUT_RDWR); }),
      shown_(options_.access.own) {}

absl::StatusOr<std::unique_ptr<HttpListener>> HttpListener::Start(
    Options options) {
  std::unique_ptr<HttpListener> listener(new HttpListener(std::move(options)));
  const std::string& listen = listener->options_.listen;
  const PageAccess& access = listener->options_.access;
  TRIBUTARY_RETURN_IF_ERROR(CheckOpen(listen, access));
  TRIBUTARY_ASSIGN_OR_RETURN(listener->socket_, Listen(listen));
  listener->port_ = PortOf(listener->socket_.get());
  const std::string reached = ReachableAddress(listen, listener->port_);
  listener->own_host_ = std::string(HostOf(reached));
  TRIBUTARY_ASSIGN_OR_RETURN(listener->daemon_,
                             listener->StartDaemon(access.own));
  listener->thread_ =
      std::thread([tended = listener.get()] { tended->Tend(); });
  return listener;
}

absl::StatusOr<std::unique_ptr<HttpListener::Daemon>> HttpListener::StartDaemon(
    const Credential& own) {
  std::vector<MHD_OptionItem> more;
  unsigned tls = 0;
  if (!own.certificate.empty()) {
    tls = MHD_USE_TLS;
    more.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0,
                    const_cast<char*>(own.certificate.c_str())});
    more.push_back(
        {MHD_OPTION_HTTPS_MEM_KEY, 0, const_cast<char*>(own.key.c_str())});
  }
  more.push_back({MHD_OPTION_END, 0, nullptr});
  auto daemon = std::make_unique<Daemon>();
  daemon->listener = this;
  daemon->number = ++daemons_;
  Daemon* const self = daemon.get();
  UniqueFd fd(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
  daemon->handle =
      !fd.ok() ? nullptr
               : MHD_start_daemon(
                     MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
                         MHD_USE_ERROR_LOG | MHD_USE_ITC | tls,
                     /*port=*/0, Callbacks::OnAccept, self,
                     Callbacks::OnRequest, self,
                     // First, because all options use it.
                     MHD_OPTION_EXTERNAL_LOGGER, OnLog, nullptr,  //
                     MHD_OPTION_LISTEN_SOCKET, fd.get(),          //
                     MHD_OPTION_NOTIFY_CONNECTION, Callbacks::OnConnection,
                     self,  //
                     MHD_OPTION_NOTIFY_COMPLETED, Callbacks::OnCompleted,
                     self,  //
                     MHD_OPTION_CONNECTION_LIMIT,
                     static_cast<unsigned>(options_.limits.connections +
                                           kShutConnections),
                     MHD_OPTION_CONNECTION_TIMEOUT, kSilentSeconds,
                     MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxPageRequestBytes,
                     MHD_OPTION_ARRAY, more.data(), MHD_OPTION_END);
  if (daemon->handle == nullptr) {
    return CannotListen(options_.listen,
                        tls == 0 ? "its thread could not be started"
                                 : "its thread could not be started, or the "
                                   "certificate and its key do not fit");
  }
  fd.Release();  // the daemon closes it
  return daemon;
}

void HttpListener::Tend() {
  const PageAccess& access = options_.access;
  const bool renews = !access.own.certificate.empty() && access.renew;
  const absl::Duration pause =
      renews ? std::min(kLookEvery, access.renew_every) : kLookEvery;
  absl::Duration since_renewal;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      AwaitFor(&mu_, absl::Condition(&ends_), pause);
      if (ends_) return;
    }
    connections_.ShutLate();
    since_renewal += pause;
    if (!renews || since_renewal < access.renew_every) continue;
    since_renewal = absl::ZeroDuration();
    Renew();
  }
}

void HttpListener::Renew() {
  const absl::StatusOr<Credential> newest = options_.access.renew();
  if (!newest.ok() || (newest->certificate == shown_.certificate &&
                       newest->key == shown_.key)) {
    return;
  }
  absl::StatusOr<std::unique_ptr<Daemon>> next = StartDaemon(*newest);
  if (!next.ok()) return;  // perhaps only one of the two files is new yet
  shown_ = *newest;
  Retire();
  daemon_ = *std::move(next);
}

void HttpListener::Retire() {
  Stop(std::move(retired_));
  retired_ = std::move(daemon_);
  const UniqueFd closed(MHD_quiesce_daemon(retired_->handle));
}

// While MHD_stop_daemon runs, MHD_queue_response ignores the response but
// reports success. libmicrohttpd 0.9.75 then reads a null pointer if it answers
// a request that it cannot parse. So no connection may be left by then.
void HttpListener::Stop(std::unique_ptr<Daemon> daemon) {
  if (daemon == nullptr) return;
  const UniqueFd closed(MHD_quiesce_daemon(daemon->handle));
  (void)connections_.Close(daemon->number, kMostToEnd);
  MHD_stop_daemon(daemon->handle);
}

HttpListener::~HttpListener() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
  }
  if (thread_.joinable()) thread_.join();
  Stop(std::move(retired_));
  Stop(std::move(daemon_));
}

HttpAnswer HttpListener::Answer(const std::string& method,
                                const std::string& path,
                                absl::string_view authorization,
                                absl::string_view host,
                                const PageReader& reader) const {
  if (method != "GET" && method != "HEAD") {
    return {.code = 405, .body = "GET is wanted\n"};
  }
  const auto page = options_.pages.find(path);
  const std::string& token = options_.access.token;
  if (token.empty() && !host.empty() && !IsOwnHost(host, own_host_)) {
    return {
        .code = 421,
        .body = absl::StrCat(
            "without a token this page answers only if the requested host is "
            "an address, localhost or ",
            own_host_, ", got the host ", Printable(host),
            "; use one of these, or start the program with "
            "--metrics-token-file\n")};
  }
  if (!token.empty() && !ShowsToken(authorization, token)) {
    if (path != options_.open_page || page == options_.pages.end()) {
      return {.code = 401, .body = "a token is wanted\n"};
    }
    const HttpAnswer whole = Make(path, page->second, reader);
    return {.code = whole.code,
            .body = whole.code == 200 ? "ok\n" : "not ok\n"};
  }
  if (page != options_.pages.end()) return Make(path, page->second, reader);
  std::string known;
  for (const auto& [name, unused] : options_.pages) {
    absl::StrAppend(&known, " ", name);
  }
  return {.code = 404, .body = absl::StrCat("there is", known, "\n")};
}

HttpAnswer HttpListener::Make(const std::string& path, const Page& page,
                              const PageReader& reader) const {
  absl::MutexLock lock(&pages_mu_);
  if (options_.on_read) options_.on_read(path, reader);
  return page();
}

}  // namespace tributary
