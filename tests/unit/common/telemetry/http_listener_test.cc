// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/http_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/testing/http/http_get.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/telemetry/one_page.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::HttpGet;
using testing::StatusIs;

TEST(HttpListenerTest, APageIsAnsweredWithItsTypeAndLength) {
  const auto listener = HttpListener::Start(testing::OnePage());
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
  const auto listener = HttpListener::Start(testing::OnePage());
  TRIBUTARY_ASSERT_OK(listener);
  const testing::HttpReply reply =
      HttpGet((*listener)->port(), "/page", "HEAD");
  EXPECT_EQ(reply.code, 200);
  EXPECT_EQ(reply.body, "");
  EXPECT_THAT(reply.headers, HasSubstr("Content-Length: 6\r\n"));
}

TEST(HttpListenerTest, OtherPathsAndMethodsAreRefused) {
  const auto listener = HttpListener::Start(testing::OnePage());
  TRIBUTARY_ASSERT_OK(listener);
  const int port = (*listener)->port();
  EXPECT_EQ(HttpGet(port, "/").code, 404);
  EXPECT_EQ(HttpGet(port, "/../../etc/passwd").code, 404);
  EXPECT_THAT(HttpGet(port, "/pag").body, HasSubstr("/page"));
  EXPECT_EQ(HttpGet(port, "/page", "POST").code, 405);
  EXPECT_EQ(HttpGet(port, "/page", "DELETE").code, 405);
}

TEST(HttpListenerTest, GarbageAndEndlessHeadersLeaveItServing) {
  const auto listener = HttpListener::Start(testing::OnePage());
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
  const auto first = HttpListener::Start(testing::OnePage());
  TRIBUTARY_ASSERT_OK(first);
  HttpListener::Options options = testing::OnePage();
  options.listen = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_THAT(HttpListener::Start(options),
              StatusIs(absl::StatusCode::kUnavailable, options.listen));
  options.listen = "no port";
  EXPECT_THAT(HttpListener::Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument, "HOST:PORT"));
  options.access.insecure = true;
  options.listen = "203.0.113.7:0";  // TEST-NET-3: not of this machine
  EXPECT_THAT(HttpListener::Start(options),
              StatusIs(absl::StatusCode::kUnavailable, "203.0.113.7:0"));
}

// A connection to a loopback port; the other end may close it.
class Reader {
 public:
  explicit Reader(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
  }
  void Send(const std::string& bytes) {
    (void)!send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Whether the other end has closed it; waits up to ten seconds for that.
  bool IsClosed() {
    pollfd wait = {fd_.get(), POLLIN, 0};
    char byte = 0;
    return poll(&wait, 1, 10'000) == 1 && recv(fd_.get(), &byte, 1, 0) <= 0;
  }

 private:
  const UniqueFd fd_;
};

TEST(HttpListenerTest, ARequestThatNeverEndsIsClosedHoweverOftenAByteComes) {
  ManualClock clock;
  HttpListener::Options options = testing::OnePage();
  options.clock = &clock;
  const auto listener = HttpListener::Start(options);
  TRIBUTARY_ASSERT_OK(listener);
  Reader slow((*listener)->port());
  for (int i = 0; i < 6; ++i) {
    slow.Send(i == 0 ? "GET /" : "a");
    // The listener's thread answers this, so it has seen the byte before.
    EXPECT_EQ(HttpGet((*listener)->port(), "/page").code, 200);
    clock.AdvanceMicros(1'000'000);
  }
  EXPECT_TRUE(slow.IsClosed());
  EXPECT_EQ(HttpGet((*listener)->port(), "/page").code, 200);
}

// The listener is told to end while it makes a page. The next request that it
// looks at cannot be parsed: there libmicrohttpd read a null pointer.
TEST(HttpListenerTest, ItEndsWhileRequestsThatAreNoneArrive) {
  absl::Notification first, second, go_on, end;
  std::atomic<int> made{0};
  HttpListener::Options options = testing::OnePage();
  options.pages["/slow"] = [&] {
    const int number = made++;
    (number == 0 ? first : second).Notify();
    (number == 0 ? go_on : end).WaitForNotification();
    return HttpAnswer{};
  };
  auto listener = HttpListener::Start(options);
  TRIBUTARY_ASSERT_OK(listener);
  const int port = (*listener)->port();
  const std::string slow = "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n";
  // Connections accepted before and after the one whose page is being made.
  Reader before(port), asks(port), after(port), holds(port);
  EXPECT_EQ(HttpGet(port, "/page").code, 200);
  holds.Send(slow);
  first.WaitForNotification();
  // The next round has all three.
  const std::string malformed = "GET /page HTTP/1.1\r\nnonsense\r\n\r\n";
  before.Send(malformed);
  asks.Send(slow);
  after.Send(malformed);
  go_on.Notify();
  second.WaitForNotification();
  std::thread ending([&] { listener->reset(); });
  EXPECT_TRUE(asks.IsClosed()) << "shut, although its page is being made";
  end.Notify();
  ending.join();
}

TEST(HttpListenerTest, OneHostsSlowConnectionsDoNotKeepAReaderOut) {
  ManualClock clock;  // stands still: no connection is late
  HttpListener::Options options = testing::OnePage();
  options.clock = &clock;
  options.limits = {.connections = 8, .of_host = 4};
  const auto listener = HttpListener::Start(options);
  TRIBUTARY_ASSERT_OK(listener);
  std::vector<std::unique_ptr<Reader>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<Reader>((*listener)->port()));
    slow.back()->Send("GET /");
    EXPECT_EQ(HttpGet((*listener)->port(), "/page").code, 200) << i;
  }
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(slow[i]->IsClosed()) << i;
}

}  // namespace
}  // namespace tributary
