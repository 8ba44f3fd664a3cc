// SPDX-License-Identifier: Apache-2.0
#include "common/wire/port/peer_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kMiB = 1 << 20;

using Account = PeerConnections::CallerAccount;

Account Worker(int rank) { return {absl::StrCat("worker ", rank), true}; }

class PeerConnectionsTest : public ::testing::Test {
 protected:
  // The bytes that the other end has sent, and whether this end has closed.
  struct State {
    int64_t received = 0;
    bool shut = false;
  };

  class FakeSocket final : public PeerConnections::Socket {
   public:
    explicit FakeSocket(std::shared_ptr<State> state)
        : state_(std::move(state)) {}
    // A connection that was shut here is over at once.
    int64_t Received() override { return state_->shut ? -1 : state_->received; }
    void Shut() override { state_->shut = true; }

   private:
    const std::shared_ptr<State> state_;
  };

  // A connection from port `port` of a host.
  std::string Open(int port, const std::string& host = "10.0.0.2") {
    std::string address = absl::StrCat("ipv4:", host, ":", port);
    states_[address] = std::make_shared<State>();
    connections_.Open(address, std::make_unique<FakeSocket>(states_[address]));
    return address;
  }
  std::string OpenAs(const Account& caller, int port) {
    std::string address = Open(port);
    connections_.Arrived(address, caller, 0);
    return address;
  }
  void Receive(const std::string& address, int64_t bytes) {
    states_[address]->received += bytes;
  }
  std::vector<std::string> Shut() const {
    std::vector<std::string> shut;
    for (const auto& [address, state] : states_) {
      if (state->shut) shut.push_back(address);
    }
    return shut;
  }
  void Limit(const PeerConnections::Limits& limits) {
    connections_.SetLimits(limits);
  }

  ManualClock clock_;
  PeerConnections connections_{&clock_};
  std::map<std::string, std::shared_ptr<State>> states_;
};

TEST_F(PeerConnectionsTest, AnAddressIsWrittenWithoutPercentSigns) {
  EXPECT_EQ(PlainAddress("ipv4:10.0.0.2:40000"), "ipv4:10.0.0.2:40000");
  EXPECT_EQ(PlainAddress("ipv6:%5B::1%5D:40"), "ipv6:[::1]:40");
  EXPECT_EQ(PlainAddress("ipv6:%5bfe80::1%252%5d:4"), "ipv6:[fe80::1%2]:4");
}

TEST_F(PeerConnectionsTest, OfTooManyTheOldestOfTheFullestHostIsClosed) {
  Limit({.connections = 100, .nobodys = 4});
  const std::string alone = Open(1, "10.0.0.9");
  const std::string oldest = Open(1);
  const std::string second = Open(2);
  Open(3);
  EXPECT_THAT(Shut(), IsEmpty());
  Open(4);
  EXPECT_THAT(Shut(), ElementsAre(oldest));
  Open(5);
  EXPECT_THAT(Shut(), UnorderedElementsAre(oldest, second));
  EXPECT_FALSE(states_[alone]->shut);
}

TEST_F(PeerConnectionsTest, AMembersConnectionIsNotNobodys) {
  Limit({.connections = 100, .nobodys = 2});
  const std::string member = OpenAs(Worker(0), 1);
  Open(2);
  Open(3);
  EXPECT_THAT(Shut(), IsEmpty());
  EXPECT_EQ(connections_.totals().nobodys, 2u);
  Open(4);
  EXPECT_FALSE(states_[member]->shut);
}

TEST_F(PeerConnectionsTest, AnObserversTicketStandsForNobody) {
  OpenAs({"observers", false}, 1);
  EXPECT_EQ(connections_.totals().nobodys, 1u);
}

TEST_F(PeerConnectionsTest, WhereAllAreMembersTheNewestIsRefused) {
  Limit({.connections = 2, .nobodys = 10});
  OpenAs(Worker(0), 1);
  OpenAs(Worker(1), 2);
  const std::string newest = Open(3);
  EXPECT_THAT(Shut(), ElementsAre(newest));
}

// A process that was started anew has the same place.
TEST_F(PeerConnectionsTest, OfAMembersTooManyTheOldestIsClosed) {
  Limit({.of_member = 2});
  const std::string oldest = OpenAs(Worker(0), 1);
  OpenAs(Worker(0), 2);
  OpenAs(Worker(1), 3);
  EXPECT_THAT(Shut(), IsEmpty());
  OpenAs(Worker(0), 4);
  EXPECT_THAT(Shut(), ElementsAre(oldest));
}

TEST_F(PeerConnectionsTest, MessagesThatArriveAreNoLongerUnfinished) {
  const std::string address = OpenAs(Worker(0), 1);
  for (int i = 0; i < 1000; ++i) {
    Receive(address, kMiB + 2000);  // with what encryption adds
    connections_.Arrived(address, Worker(0), kMiB);
    connections_.Look();
  }
  EXPECT_EQ(connections_.totals().bytes, 0);
  Receive(address, 3 * kMiB);
  connections_.Look();
  EXPECT_EQ(connections_.totals().bytes, 3 * kMiB);
}

// Otherwise a peer could save up what its calls did not use.
TEST_F(PeerConnectionsTest, SmallCallsAreNoCredit) {
  const std::string address = OpenAs(Worker(0), 1);
  for (int i = 0; i < 1000; ++i) connections_.Arrived(address, Worker(0), kMiB);
  Receive(address, 1000);
  connections_.Look();
  EXPECT_EQ(connections_.totals().bytes, 1000);
}

TEST_F(PeerConnectionsTest, AMemberWhoseMessagesNeverEndIsCutOff) {
  Limit({.bytes = 100 * kMiB});
  const std::string other = OpenAs(Worker(0), 1);
  const std::string first = OpenAs(Worker(1), 2);
  const std::string second = OpenAs(Worker(1), 3);
  Receive(other, 99 * kMiB);
  Receive(first, 70 * kMiB);
  Receive(second, 29 * kMiB);
  connections_.Look();
  EXPECT_THAT(Shut(), IsEmpty());
  Receive(second, 2 * kMiB);
  connections_.Look();
  EXPECT_THAT(Shut(), ElementsAre(first));  // the larger; the other may go on
}

TEST_F(PeerConnectionsTest, WhatIsNobodysIsLimitedAloneAndTogether) {
  Limit({.bytes = 100 * kMiB, .nobodys_bytes = 150 * kMiB});
  const std::string member = OpenAs(Worker(0), 9);
  Receive(member, 100 * kMiB);
  const std::string large = Open(1), small = Open(2), huge = Open(3);
  Receive(large, 90 * kMiB);
  Receive(small, 60 * kMiB);
  connections_.Look();
  EXPECT_THAT(Shut(), IsEmpty());
  Receive(huge, 101 * kMiB);
  connections_.Look();
  EXPECT_THAT(Shut(), ElementsAre(huge));
  Receive(small, 1);
  connections_.Look();
  EXPECT_THAT(Shut(), UnorderedElementsAre(large, huge));
}

TEST_F(PeerConnectionsTest, CallsAreLimitedLikeBytes) {
  Limit({.calls = 10, .nobodys_calls = 15});
  const std::string member = OpenAs(Worker(0), 1);
  const std::string large = Open(2), small = Open(3);
  connections_.SetCalls(member, 10);
  connections_.SetCalls(large, 8);
  connections_.SetCalls(small, 7);
  connections_.Look();
  EXPECT_THAT(Shut(), IsEmpty());
  connections_.SetCalls(small, 8);
  connections_.Look();
  EXPECT_EQ(Shut().size(), 1u);
  connections_.SetCalls(member, 11);
  connections_.Look();
  EXPECT_TRUE(states_[member]->shut);
}

TEST_F(PeerConnectionsTest, CallsThatDoNotArriveAreRefusedToTheirCallerAlone) {
  Limit({.arriving = 10});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(connections_.Begin(Worker(0)));
  EXPECT_FALSE(connections_.Begin(Worker(0)));
  EXPECT_TRUE(connections_.Begin(Worker(1)));
  connections_.Arrived("ipv4:10.0.0.2:1", Worker(0), 5);
  EXPECT_TRUE(connections_.Begin(Worker(0)));
  EXPECT_FALSE(connections_.Begin(Worker(0)));
  // A tenth is given back in each second.
  clock_.AdvanceMicros(999'000);
  EXPECT_FALSE(connections_.Begin(Worker(0)));
  clock_.AdvanceMicros(2'000);
  EXPECT_TRUE(connections_.Begin(Worker(0)));
  EXPECT_FALSE(connections_.Begin(Worker(0)));
}

TEST_F(PeerConnectionsTest, OnlyThoseThatSaidSomethingAreAskedAbout) {
  const std::string busy = Open(1);
  Open(2);
  Receive(busy, 10);
  EXPECT_THAT(connections_.Look(), ElementsAre(busy));
  EXPECT_THAT(connections_.Look(), IsEmpty());
  connections_.SetCalls(busy, 1);  // which may end
  EXPECT_THAT(connections_.Look(), ElementsAre(busy));
}

TEST_F(PeerConnectionsTest, ThoseThatAreOverAreForgotten) {
  Limit({.nobodys = 2});
  const std::string first = Open(1);
  Open(2);
  states_[first]->received = -1;  // the peer has closed it
  connections_.Look();
  EXPECT_EQ(connections_.totals().connections, 1u);
  EXPECT_EQ(connections_.totals().nobodys, 1u);
  const std::string third = Open(3);
  EXPECT_FALSE(states_[third]->shut);
  // Closed here, and swept before anybody looks.
  for (int port = 4; port < 100; ++port) Open(port);
  EXPECT_LT(connections_.totals().connections, 5u);
}

TEST_F(PeerConnectionsTest, ALaterConnectionOfAnAddressTakesItsPlace) {
  OpenAs(Worker(0), 1);
  Open(1);
  EXPECT_EQ(connections_.totals().connections, 1u);
  EXPECT_EQ(connections_.totals().nobodys, 1u);
}

}  // namespace
}  // namespace tributary
