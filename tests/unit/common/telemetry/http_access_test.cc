// SPDX-License-Identifier: Apache-2.0
// Who may read the pages of an HttpListener, and over which connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/security/certificate_authority.h"
#include "common/telemetry/http_listener.h"
#include "tests/testing/http/http_get.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/telemetry/one_page.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::HttpGet;
using testing::StatusIs;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

TEST(HttpAccessTest, OnlyNamesOfThisHostAreItsOwn) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:7090", "10.0.0.2:1", "[::1]",
                           "[::1]:7090", "[2001:db8::1]:80", "localhost",
                           "LocalHost:7090", "node1", "Node1:7090"}) {
    EXPECT_TRUE(IsOwnHost(host, "node1")) << host;
  }
  for (const char* host : {"evil.example",
                           "evil.example:7090",
                           "127.0.0.1.evil.example",
                           "localhost.evil.example",
                           "node1.evil.example",
                           "[::1].evil.example",
                           "[::1]evil:80",
                           "[::1",
                           "::1",
                           "[",
                           "[]",
                           "]",
                           ":",
                           ":80",
                           "1.2.3",
                           "127.0.0.1:7090:1",
                           "127.0.0.1:http",
                           "localhost:80@evil.example",
                           "localhost ",
                           "evil.example:80 127.0.0.1"}) {
    EXPECT_FALSE(IsOwnHost(host, "node1")) << host;
  }
  EXPECT_FALSE(IsOwnHost("", ""));
}

// A web page whose name leads here (DNS rebinding) reads nothing.
TEST(HttpAccessTest, WithoutATokenOtherHostsAreMisdirected) {
  HttpListener::Options options = testing::OnePage();
  options.pages["/healthz"] = [] { return HttpAnswer{.body = "ok\n"}; };
  const auto listener = HttpListener::Start(options);
  TRIBUTARY_ASSERT_OK(listener);
  const int port = (*listener)->port();
  for (const char* path : {"/page", "/healthz", "/nothing"}) {
    const std::string answer = testing::HttpRaw(
        port, absl::StrCat("GET ", path,
                           " HTTP/1.1\r\nHost: evil.example:7090\r\n"
                           "Connection: close\r\n\r\n"));
    EXPECT_THAT(answer, HasSubstr("HTTP/1.1 421 "));
    EXPECT_THAT(answer, HasSubstr("got the host evil.example:7090"));
    EXPECT_THAT(answer, ::testing::Not(HasSubstr("hello")));
  }
  EXPECT_THAT(testing::HttpRaw(port, "GET /page HTTP/1.0\r\n\r\n"),
              HasSubstr("hello\n"));
  options.access.token = kToken;
  const auto closed = HttpListener::Start(options);
  TRIBUTARY_ASSERT_OK(closed);
  EXPECT_EQ(
      (*closed)
          ->Answer("GET", "/page",
                   absl::StrCat("Bearer ", options.access.token), "any.example")
          .code,
      200);
}

TEST(HttpAccessTest, ATokenIsShownAsBearerOrPassword) {
  EXPECT_TRUE(ShowsToken(absl::StrCat("Bearer ", kToken), kToken));
  EXPECT_TRUE(ShowsToken(absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat(
                                                    "anybody:", kToken))),
                         kToken));
  for (const std::string& wrong :
       {std::string(), std::string(kToken),
        absl::StrCat("Bearer ", kToken, "0"), absl::StrCat("bearer ", kToken),
        std::string("Basic !"),
        absl::StrCat("Basic ", absl::Base64Escape(kToken)),
        absl::StrCat("Basic ", absl::Base64Escape(":"))}) {
    EXPECT_FALSE(ShowsToken(wrong, kToken)) << wrong;
  }
}

TEST(HttpAccessTest, WithoutTheTokenOnlyHealthAnswersAndSaysLittle) {
  HttpListener::Options options = testing::OnePage();
  options.access.token = kToken;
  bool well = true;
  options.pages["/healthz"] = [&well] {
    return well ? HttpAnswer{.body = "ok\nwaits for rank 3\n"}
                : HttpAnswer{.code = 503, .body = "the disk is full\n"};
  };
  const auto listener = HttpListener::Start(options);
  TRIBUTARY_ASSERT_OK(listener);
  const auto get = [&listener](const char* path, const std::string& shown) {
    return (*listener)->Answer("GET", path, shown);
  };
  const std::string bearer = absl::StrCat("Bearer ", kToken);
  EXPECT_EQ(get("/page", "").code, 401);
  EXPECT_EQ(get("/page", "Bearer x").code, 401);
  EXPECT_EQ(get("/nothing", "").code, 401);
  EXPECT_EQ(get("/page", bearer).body, "hello\n");
  EXPECT_EQ(get("/healthz", "").body, "ok\n");
  EXPECT_EQ(get("/healthz", bearer).body, "ok\nwaits for rank 3\n");
  well = false;
  EXPECT_EQ(get("/healthz", "").body, "not ok\n");
  EXPECT_EQ(get("/healthz", "").code, 503);
  const testing::HttpReply reply = HttpGet((*listener)->port(), "/page");
  EXPECT_EQ(reply.code, 401);
  EXPECT_THAT(reply.headers, HasSubstr("WWW-Authenticate: Basic"));
}

TEST(HttpAccessTest, AnOpenAddressWantsTokenAndTls) {
  HttpListener::Options options = testing::OnePage();
  options.listen = "0.0.0.0:0";
  EXPECT_THAT(HttpListener::Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "0.0.0.0:0 is open to other machines: give --tls and "
                       "--metrics-token-file, or --insecure-metrics"));
  options.access.own.certificate = "of the run's own authority";
  EXPECT_THAT(HttpListener::Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "machines: give --metrics-token-file, or "
                       "--insecure-metrics"));
  options.access.own = {};
  options.access.token = kToken;
  EXPECT_THAT(HttpListener::Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument, ""));
  options.access.insecure = true;
  TRIBUTARY_EXPECT_OK(HttpListener::Start(options));
}

// The answer to a TLS client that asks for /page; empty if its handshake fails.
std::string GetEncrypted(int port, const std::string& authority) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
      SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> pem(
      BIO_new_mem_buf(authority.data(), static_cast<int>(authority.size())),
      BIO_free);
  X509* const root = PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), root);
  X509_free(root);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> connection(
      BIO_new_ssl_connect(context.get()), BIO_free_all);
  BIO_set_conn_hostname(connection.get(),
                        absl::StrCat("127.0.0.1:", port).c_str());
  if (BIO_do_handshake(connection.get()) != 1) return "";
  BIO_puts(connection.get(),
           absl::StrCat("GET /page HTTP/1.0\r\nAuthorization: Bearer ", kToken,
                        "\r\n\r\n")
               .c_str());
  std::string reply;
  char part[512];
  for (int got; (got = BIO_read(connection.get(), part, sizeof(part))) > 0;) {
    reply.append(part, static_cast<size_t>(got));
  }
  return reply;
}

// An authority, and what it issues.
struct Issuer {
  CertificateAuthority authority =
      CertificateAuthority::Create(
          {absl::Now() - absl::Hours(1), absl::Hours(24)})
          .value();
  std::string root = authority.ToPem()->certificate;

  Credential Issue() const {
    return authority
        .Issue({.identity = {.role = PeerRole::kCoordinator}},
               {absl::Now() - absl::Hours(1), absl::Hours(24)})
        .value();
  }
};

TEST(HttpAccessTest, ANewCertificateIsShownWithoutARestart) {
  const Issuer before, after;
  const Credential next = after.Issue();
  HttpListener::Options options = testing::OnePage();
  options.access = {.token = kToken, .own = before.Issue()};
  // The files are replaced one by one: for a while they do not fit.
  std::atomic<int> asked{0};
  options.access.renew = [&]() -> absl::StatusOr<Credential> {
    switch (++asked) {
      case 1:
        return absl::NotFoundError("the folder is being replaced");
      case 2:
        return Credential{next.certificate, options.access.own.key};
      default:
        return next;
    }
  };
  options.access.renew_every = absl::Milliseconds(20);
  const auto listener = HttpListener::Start(options);
  TRIBUTARY_ASSERT_OK(listener);
  const int port = (*listener)->port();
  const absl::Time limit = absl::Now() + testing::kSoon;
  while (GetEncrypted(port, after.root).empty() && absl::Now() < limit) {
    const int seen = asked;
    const bool old = !GetEncrypted(port, before.root).empty();
    EXPECT_TRUE(old || asked > seen || seen > 2) << "there is always one";
  }
  EXPECT_THAT(GetEncrypted(port, after.root), HasSubstr("hello\n"));
  EXPECT_EQ(GetEncrypted(port, before.root), "");
}

TEST(HttpAccessTest, ItServesOverTls) {
  const Issuer issuer;
  const CertificateAuthority& authority = issuer.authority;
  const Credential own = issuer.Issue();
  HttpListener::Options options = testing::OnePage();
  options.listen = "0.0.0.0:0";
  options.access = {.token = kToken, .own = own};
  const auto listener = HttpListener::Start(options);
  TRIBUTARY_ASSERT_OK(listener);
  const int port = (*listener)->port();
  EXPECT_THAT(GetEncrypted(port, authority.ToPem()->certificate),
              HasSubstr("hello\n"));
  const auto other = CertificateAuthority::Create(
                         {absl::Now() - absl::Hours(1), absl::Hours(24)})
                         .value();
  EXPECT_EQ(GetEncrypted(port, other.ToPem()->certificate), "");
}

}  // namespace
}  // namespace tributary
