// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/http_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/http/http_get.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::HttpGet;
using testing::StatusIs;

HttpListener::Options Options() {
  return {.listen = "127.0.0.1:0", .pages = {{"/page", [] {
                                                return HttpAnswer{
                                                    .content_type = "text/x",
                                                    .body = "hello\n"};
                                              }}}};
}

TEST(HttpListenerTest, APageIsAnsweredWithItsTypeAndLength) {
  const auto listener = HttpListener::Start(Options());
  TRIBUTARY_ASSERT_OK(listener);
  const testing::HttpReply reply = HttpGet((*listener)->port(), "/page?x=1");
  EXPECT_EQ(reply.code, 200);
  EXPECT_EQ(reply.body, "hello\n");
  EXPECT_THAT(reply.headers, HasSubstr("Content-Type: text/x\r\n"));
  EXPECT_THAT(reply.headers, HasSubstr("Content-Length: 6\r\n"));
}

TEST(HttpListenerTest, APageMaySendHeadersOfItsOwn) {
  const auto listener = HttpListener::Start(
      {.listen = "127.0.0.1:0",
       .pages = {
           {"/page", [] {
              return HttpAnswer{.headers = {{"X-A", "1"}, {"X-B", "two"}}};
            }}}});
  TRIBUTARY_ASSERT_OK(listener);
  const testing::HttpReply reply = HttpGet((*listener)->port(), "/page");
  EXPECT_THAT(reply.headers, HasSubstr("X-A: 1\r\n"));
  EXPECT_THAT(reply.headers, HasSubstr("X-B: two\r\n"));
}

TEST(HttpListenerTest, HeadGetsTheHeadersAlone) {
  const auto listener = HttpListener::Start(Options());
  TRIBUTARY_ASSERT_OK(listener);
  const testing::HttpReply reply =
      HttpGet((*listener)->port(), "/page", "HEAD");
  EXPECT_EQ(reply.code, 200);
  EXPECT_EQ(reply.body, "");
  EXPECT_THAT(reply.headers, HasSubstr("Content-Length: 6\r\n"));
}

TEST(HttpListenerTest, OtherPathsAndMethodsAreRefused) {
  const auto listener = HttpListener::Start(Options());
  TRIBUTARY_ASSERT_OK(listener);
  const int port = (*listener)->port();
  EXPECT_EQ(HttpGet(port, "/").code, 404);
  EXPECT_EQ(HttpGet(port, "/../../etc/passwd").code, 404);
  EXPECT_THAT(HttpGet(port, "/pag").body, HasSubstr("/page"));
  EXPECT_EQ(HttpGet(port, "/page", "POST").code, 405);
  EXPECT_EQ(HttpGet(port, "/page", "DELETE").code, 405);
}

TEST(HttpListenerTest, GarbageAndEndlessHeadersLeaveItServing) {
  const auto listener = HttpListener::Start(Options());
  TRIBUTARY_ASSERT_OK(listener);
  const int port = (*listener)->port();
  testing::HttpRaw(port, std::string("\0\xff\x01garbage\r\n\r\n", 14));
  const std::string endless = testing::HttpRaw(
      port, absl::StrCat("GET /page HTTP/1.1\r\nX: ", std::string(20'000, 'a'),
                         "\r\n\r\n"));
  EXPECT_THAT(endless, ::testing::Not(HasSubstr("hello")));
  EXPECT_EQ(HttpGet(port, "/page").body, "hello\n");
}

TEST(HttpListenerTest, ATakenPortIsAnErrorThatNamesIt) {
  const auto first = HttpListener::Start(Options());
  TRIBUTARY_ASSERT_OK(first);
  HttpListener::Options options = Options();
  options.listen = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_THAT(HttpListener::Start(options),
              StatusIs(absl::StatusCode::kUnavailable, options.listen));
  options.listen = "no port";
  EXPECT_THAT(HttpListener::Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument, "HOST:PORT"));
  options.listen = "203.0.113.7:0";  // TEST-NET-3: not of this machine
  EXPECT_THAT(HttpListener::Start(options),
              StatusIs(absl::StatusCode::kUnavailable, "203.0.113.7:0"));
}

}  // namespace
}  // namespace tributary
