// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/page_connections.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PageConnectionsTest : public ::testing::Test {
 protected:
  // Each connection begins a microsecond after the one before.
  void Begin(int fd, const std::string& host) {
    clock_.AdvanceMicros(1);
    connections_.Begin(fd, host);
  }

  ManualClock clock_;
  std::vector<int> shut_;
  PageConnections connections_{&clock_,
                               {.connections = 6,
                                .of_host = 3,
                                .request_micros = 1000,
                                .answer_micros = 5000},
                               [this](int fd) { shut_.push_back(fd); }};
};

TEST_F(PageConnectionsTest, ARequestThatComesByteByByteIsLate) {
  connections_.Begin(7, "a");
  clock_.AdvanceMicros(1000);
  connections_.ShutLate();
  EXPECT_THAT(shut_, IsEmpty());
  clock_.AdvanceMicros(1);
  connections_.ShutLate();
  EXPECT_THAT(shut_, ElementsAre(7));
  clock_.AdvanceMicros(1000);
  connections_.ShutLate();
  EXPECT_THAT(shut_, ElementsAre(7)) << "once";
}

TEST_F(PageConnectionsTest, AnAnswerThatIsNotReadIsLateLater) {
  connections_.Begin(7, "a");
  clock_.AdvanceMicros(900);
  connections_.Asked(7);
  clock_.AdvanceMicros(5000);
  connections_.ShutLate();
  EXPECT_THAT(shut_, IsEmpty());
  clock_.AdvanceMicros(1);
  connections_.ShutLate();
  EXPECT_THAT(shut_, ElementsAre(7));
}

TEST_F(PageConnectionsTest, EachRequestOfAConnectionHasItsOwnTime) {
  connections_.Begin(7, "a");
  for (int request = 0; request < 10; ++request) {
    clock_.AdvanceMicros(900);
    connections_.Asked(7);
    clock_.AdvanceMicros(900);
    connections_.Answered(7);
    connections_.ShutLate();
    ASSERT_THAT(shut_, IsEmpty());
  }
  clock_.AdvanceMicros(1001);
  connections_.ShutLate();
  EXPECT_THAT(shut_, ElementsAre(7));
}

TEST_F(PageConnectionsTest, AHostLosesItsOldestForANewOne) {
  for (int fd : {1, 2, 3}) Begin(fd, "a");
  Begin(4, "b");
  EXPECT_THAT(shut_, IsEmpty());
  Begin(5, "a");
  EXPECT_THAT(shut_, ElementsAre(1));
  clock_.AdvanceMicros(1);
  connections_.Asked(2);  // begins another phase, so that 3 is the oldest
  Begin(6, "a");
  EXPECT_THAT(shut_, ElementsAre(1, 3));
  EXPECT_EQ(connections_.size(), 4u);
  connections_.End(1);
  connections_.End(5);
  Begin(8, "a");
  EXPECT_THAT(shut_, ElementsAre(1, 3));
}

TEST_F(PageConnectionsTest, WhoHasMostMakesRoomForAnotherHost) {
  for (int fd : {1, 2, 3}) Begin(fd, "greedy");
  for (int fd : {4, 5}) Begin(fd, "b");
  Begin(6, "c");
  EXPECT_THAT(shut_, IsEmpty());
  Begin(7, "health check");
  EXPECT_THAT(shut_, ElementsAre(1));
  Begin(8, "health check");
  EXPECT_THAT(shut_, ElementsAre(1, 2));
}

TEST_F(PageConnectionsTest, AnOlderConnectionOfAModestHostStays) {
  Begin(1, "modest");
  for (int fd : {2, 3, 4}) Begin(fd, "greedy");
  Begin(5, "b");
  Begin(6, "c");
  EXPECT_THAT(shut_, IsEmpty());
  Begin(7, "health check");
  EXPECT_THAT(shut_, ElementsAre(2));
  Begin(8, "health check");
  EXPECT_THAT(shut_, ElementsAre(2, 3));
}

TEST_F(PageConnectionsTest, OfManyHostsWithOneEachTheOldestMakesRoom) {
  for (int fd = 1; fd <= 6; ++fd) Begin(fd, std::to_string(10 - fd));
  Begin(7, "health check");
  EXPECT_THAT(shut_, ElementsAre(1));
}

std::string HostOf4(const char* text) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 5};
  inet_pton(AF_INET, text, &address.sin_addr);
  return PeerHost(reinterpret_cast<const sockaddr&>(address));
}

std::string HostOf6(const char* text) {
  sockaddr_in6 address{.sin6_family = AF_INET6, .sin6_port = 5};
  inet_pton(AF_INET6, text, &address.sin6_addr);
  return PeerHost(reinterpret_cast<const sockaddr&>(address));
}

TEST_F(PageConnectionsTest, ADaemonThatEndsShutsItsConnectionsAndWaitsForThem) {
  EXPECT_TRUE(connections_.Admit(1));
  connections_.Begin(7, "a", 1);
  connections_.Begin(8, "a", 2);
  EXPECT_FALSE(connections_.Close(1, absl::ZeroDuration()));
  EXPECT_THAT(shut_, ElementsAre(7)) << "8 belongs to a later one";
  connections_.End(7);
  EXPECT_TRUE(connections_.Close(1, absl::ZeroDuration()));
  EXPECT_FALSE(connections_.Admit(1));
  EXPECT_TRUE(connections_.Admit(2));
}

// The connection was accepted before the daemon's end, but begins afterwards.
TEST_F(PageConnectionsTest, AConnectionThatBeginsTooLateIsShutAndWaitedFor) {
  EXPECT_TRUE(connections_.Admit(1));
  EXPECT_FALSE(connections_.Close(1, absl::ZeroDuration()));
  connections_.Begin(9, "a", 1);
  EXPECT_THAT(shut_, ElementsAre(9));
  EXPECT_FALSE(connections_.Close(1, absl::ZeroDuration()));
  connections_.End(9);
  EXPECT_TRUE(connections_.Close(1, absl::ZeroDuration()));
}

TEST(PeerHostTest, AHostMayHaveAllAddressesOfItsIpv6Network) {
  EXPECT_EQ(HostOf4("10.0.0.2"), "10.0.0.2");
  EXPECT_NE(HostOf4("10.0.0.2"), HostOf4("10.0.0.3"));
  EXPECT_EQ(HostOf6("2001:db8:0:1:2::3"), HostOf6("2001:db8:0:1::9"));
  EXPECT_NE(HostOf6("2001:db8:0:1::3"), HostOf6("2001:db8:0:2::3"));
  EXPECT_NE(HostOf6("::ffff:10.0.0.2"), HostOf6("::ffff:10.0.0.3"));
  EXPECT_EQ(PeerHost(sockaddr{.sa_family = AF_UNIX}), "");
}

}  // namespace
}  // namespace tributary
