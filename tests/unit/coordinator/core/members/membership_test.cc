// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/members/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLease = 10'000'000;

v1::RegisterRequest Worker(const std::string& instance) {
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_instance(instance);
  request.set_host("node-a");
  request.set_pid(55);
  return request;
}

v1::RegisterRequest Server(const std::string& instance,
                           const std::string& address) {
  v1::RegisterRequest request = Worker(instance);
  request.set_role(v1::ROLE_SERVER);
  request.set_address(address);
  return request;
}

TEST(MembershipTest, PlacesAreGivenInOrderOfArrivalByRole) {
  Membership members(1, 2, kLease);
  EXPECT_EQ((*members.Register(Worker("a"), 0))->index, 0u);
  EXPECT_EQ((*members.Register(Server("s", "h:1"), 0))->index, 0u);
  EXPECT_EQ((*members.Register(Worker("b"), 0))->index, 1u);
  EXPECT_TRUE(members.Complete());
}

TEST(MembershipTest, WhatAMemberSaysOfItselfIsKeptInBounds) {
  Membership members(1, 2, kLease);
  v1::RegisterRequest wordy = Worker("a");
  wordy.set_address(std::string(1000, 'x') + ":1");
  EXPECT_FALSE(members.Register(wordy, 0).ok()) << "a worker's address, too";
  // A field that nobody knows, of 1000 bytes.
  ASSERT_TRUE(wordy.ParseFromString(Worker("a").SerializeAsString() +
                                    "\x82\x7d\xe8\x07" +
                                    std::string(1000, 'x')));
  EXPECT_LT((*members.Register(wordy, 0))->holder.ByteSizeLong(), 100u);

  v1::HeartbeatRequest heartbeat;
  heartbeat.mutable_wait()->set_text(std::string(4095, 'x') +
                                     "\xc3\xa4");  // an a umlaut
  heartbeat.set_device(std::string(1 << 20, 'x'));
  for (uint32_t i = 0; i < 1000; ++i) heartbeat.mutable_wait()->add_ranks(i);
  const auto figures = MemberFigures::Of(heartbeat, /*num_workers=*/2);
  EXPECT_EQ(figures.wait.text(), std::string(4095, 'x'));
  EXPECT_EQ(figures.device.size(), 256u);
  EXPECT_EQ(figures.wait.ranks_size(), 2);
  EXPECT_EQ(ShortSentence(std::string(1 << 20, 'x')).size(), 4096u);
}

TEST(MembershipTest, SameInstanceGetsTheSamePlaceAndIncarnationAgain) {
  Membership members(1, 2, kLease);
  members.Register(Worker("a"), 0).value();
  const Place first = **members.Register(Worker("b"), 0);
  const Place again = **members.Register(Worker("b"), 5);
  EXPECT_EQ(again.index, first.index);
  EXPECT_EQ(again.incarnation, first.incarnation);
}

TEST(MembershipTest, InstanceWhoseLeaseLapsedComesBackWithAHigherIncarnation) {
  Membership members(1, 2, kLease);
  members.Register(Worker("a"), 0).value();
  const uint64_t before = (*members.Register(Worker("b"), 0))->incarnation;
  EXPECT_EQ(members.Expire(kLease + 1).size(), 2u);
  const Place* again = *members.Register(Worker("b"), kLease + 2);
  EXPECT_EQ(again->index, 1u);
  EXPECT_GT(again->incarnation, before);
}

v1::RegisterRequest Computing(const std::string& instance,
                              const std::string& arithmetic) {
  v1::RegisterRequest request = Worker(instance);
  request.set_arithmetic(arithmetic);
  return request;
}

// A worker takes its place before it knows its device, and names it later.
TEST(MembershipTest, AHolderWithAnotherArithmeticRecomputes) {
  Membership members(0, 1, kLease);
  members.Register(Worker("a"), 0).value();
  const Place* place = *members.Register(Computing("a", "cpu"), 0);
  EXPECT_FALSE(place->Recomputes("cpu"));
  members.Expire(kLease + 1);
  place = *members.Register(Worker("b"), kLease + 2);
  EXPECT_FALSE(place->Recomputes("")) << "it has not said yet";
  place = *members.Register(Computing("b", "cuda"), kLease + 2);
  EXPECT_TRUE(place->Recomputes("cuda"));
  place = *members.Register(Computing("b", "cuda"), kLease + 3);
  EXPECT_TRUE(place->Recomputes("cuda")) << "asked again";
}

// When the second holder is lost, some servers may still hold the first one's.
TEST(MembershipTest, AfterSeveralArithmeticsEveryNewHolderRecomputes) {
  Membership members(0, 1, kLease);
  members.Register(Computing("a", "cpu"), 0).value();
  members.Expire(kLease + 1);
  members.Register(Computing("b", "cuda"), kLease + 2).value();
  members.Expire(2 * kLease + 3);
  const Place* place =
      *members.Register(Computing("c", "cuda"), 2 * kLease + 4);
  EXPECT_TRUE(place->Recomputes("cuda"));
}

TEST(MembershipTest, AnEqualArithmeticComputesNothingAnew) {
  Membership members(0, 1, kLease);
  members.Register(Computing("a", "cpu"), 0).value();
  members.Expire(kLease + 1);
  members.Register(Worker("b"), kLease + 2).value();
  EXPECT_FALSE((*members.Register(Computing("b", "cpu"), kLease + 2))
                   ->Recomputes("cpu"));
}

TEST(MembershipTest, TheArithmeticOutlivesTheCoordinator) {
  Membership members(0, 1, kLease);
  members.Register(Computing("a", "cpu"), 0).value();
  members.Register(Worker("a"), 1).value();
  v1::CoordinatorState state;
  members.Save(&state);
  Membership next(0, 1, kLease);
  next.Restore(state, 2);
  next.Expire(kLease + 3);
  const Place* place = *next.Register(Computing("b", "cuda"), kLease + 4);
  EXPECT_TRUE(place->Recomputes("cuda"));
}

TEST(MembershipTest, IncarnationsStrictlyIncreaseOverAllPlaces) {
  Membership members(2, 2, kLease);
  uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    const int64_t now = round * 2 * kLease;
    members.Expire(now);
    const std::string suffix = absl::StrCat(round);
    for (const v1::RegisterRequest& request :
         {Worker("w0-" + suffix), Server("s0-" + suffix, "h:1"),
          Worker("w1-" + suffix), Server("s1-" + suffix, "h:2")}) {
      const uint64_t incarnation =
          (*members.Register(request, now))->incarnation;
      EXPECT_GT(incarnation, last);
      last = incarnation;
    }
  }
}

TEST(MembershipTest, FullHouseRefusesAndSaysSo) {
  Membership members(1, 1, kLease);
  members.Register(Worker("a"), 0).value();
  const absl::Status status = members.Register(Worker("b"), 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("all 1 places for a worker are taken"));
}

TEST(MembershipTest, LapsedPlaceIsTakenByANewcomerAndTheOldHolderIsFenced) {
  Membership members(1, 1, kLease);
  const uint64_t old = (*members.Register(Worker("a"), 0))->incarnation;
  members.Expire(kLease + 1);
  members.Register(Worker("b"), kLease + 1).value();
  const absl::Status status =
      members.Renew(v1::ROLE_WORKER, 0, old, kLease + 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("to a newer one"));
}

TEST(MembershipTest, OnlyTheLivingHolderHoldsAPlace) {
  Membership members(1, 1, kLease);
  const auto holds = [&members](v1::Role role, uint64_t incarnation) {
    return members.CheckHolder(role, 0, incarnation).ok();
  };
  const uint64_t old = (*members.Register(Worker("a"), 0))->incarnation;
  EXPECT_TRUE(holds(v1::ROLE_WORKER, old));
  EXPECT_FALSE(holds(v1::ROLE_SERVER, old));
  EXPECT_FALSE(members.CheckHolder(v1::ROLE_WORKER, 1, old).ok());
  EXPECT_EQ(members.workers()[0].FirstIncarnation(), old);
  members.Expire(kLease + 1);
  EXPECT_FALSE(holds(v1::ROLE_WORKER, old));
  EXPECT_EQ(members.workers()[0].FirstIncarnation(), old + 1);
  const uint64_t next =
      (*members.Register(Worker("b"), kLease + 1))->incarnation;
  EXPECT_FALSE(holds(v1::ROLE_WORKER, old));
  EXPECT_TRUE(holds(v1::ROLE_WORKER, next));
  EXPECT_EQ(members.workers()[0].FirstIncarnation(), next);
}

TEST(MembershipTest, LeaseLivesToItsLastMicrosecondAndIsReportedLostOnce) {
  Membership members(1, 1, kLease);
  members.Register(Worker("a"), 100).value();
  EXPECT_TRUE(members.Expire(100 + kLease).empty());
  const auto lost = members.Expire(101 + kLease);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0]->Name(), "worker 0 (node-a, pid 55)");
  EXPECT_TRUE(members.Expire(102 + kLease).empty());
}

TEST(MembershipTest, RenewedLeaseCountsFromTheHeartbeat) {
  Membership members(1, 1, kLease);
  const uint64_t incarnation = (*members.Register(Worker("a"), 0))->incarnation;
  members.Renew(v1::ROLE_WORKER, 0, incarnation, kLease).value();
  EXPECT_TRUE(members.Expire(2 * kLease).empty());
  EXPECT_EQ(members.Expire(2 * kLease + 1).size(), 1u);
}

TEST(MembershipTest, LapsedLeaseCannotBeRenewed) {
  Membership members(1, 1, kLease);
  const uint64_t incarnation = (*members.Register(Worker("a"), 0))->incarnation;
  members.Expire(kLease + 1);
  EXPECT_EQ(members.Renew(v1::ROLE_WORKER, 0, incarnation, kLease + 2)
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(MembershipTest, FinishedMemberNeedsNoLeaseAndKeepsItsPlace) {
  Membership members(1, 1, kLease);
  members.Register(Worker("a"), 0).value();
  members.SetFinished(/*worker=*/0, true);
  EXPECT_TRUE(members.Expire(100 * kLease).empty());
  EXPECT_FALSE(members.Register(Worker("b"), 100 * kLease).ok());
}

TEST(MembershipTest, HoldersAndLossesOfAPlaceAreCounted) {
  Membership members(1, 1, kLease);
  members.Register(Worker("a"), 0).value();
  members.Register(Worker("a"), 1).value();  // the same process again
  EXPECT_EQ(members.workers()[0].holders, 1u);
  EXPECT_EQ(members.workers()[0].losses, 0u);
  EXPECT_EQ(members.Expire(1 + 2 * kLease).size(), 1u);
  members.Register(Worker("b"), 1 + 2 * kLease).value();
  EXPECT_EQ(members.workers()[0].holders, 2u);
  EXPECT_EQ(members.workers()[0].losses, 1u);
}

TEST(MembershipTest, WantedPlaceIsGivenOrNone) {
  Membership members(1, 3, kLease);
  v1::RegisterRequest request = Worker("a");
  request.set_wanted_index(2);
  EXPECT_EQ((*members.Register(request, 0))->index, 2u);
  request.set_instance("b");
  const absl::Status taken = members.Register(request, 0).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(taken.message()), HasSubstr("worker 2 is taken"));
  request.set_wanted_index(3);
  EXPECT_EQ(members.Register(request, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MembershipTest, TwoServersCannotShareAnAddress) {
  Membership members(2, 1, kLease);
  members.Register(Server("s", "127.0.0.1:7000"), 0).value();
  const absl::Status status =
      members.Register(Server("t", "127.0.0.1:7000"), 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("address 127.0.0.1:7000 is held by server 0"));
}

TEST(MembershipTest, NonsenseIsRefused) {
  Membership members(1, 1, kLease);
  const auto code = [&](const v1::RegisterRequest& request) {
    return members.Register(request, 0).status().code();
  };
  EXPECT_EQ(code(v1::RegisterRequest()), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Worker("")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Worker(std::string(257, 'x'))),
            absl::StatusCode::kInvalidArgument);
  for (const char* address : {"", "host", ":7000", "host:", "host:65536"}) {
    EXPECT_EQ(code(Server("s", address)), absl::StatusCode::kInvalidArgument)
        << address;
  }
  v1::RegisterRequest no_metrics = Worker("a");
  no_metrics.set_metrics_address("nowhere");
  EXPECT_EQ(code(no_metrics), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Computing("a", std::string(4097, 'x'))),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(members.Renew(v1::ROLE_WORKER, 7, 1, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MembershipTest, MissingNamesEveryFreePlace) {
  Membership members(2, 2, kLease);
  members.Register(Server("s", "h:1"), 0).value();
  members.Register(Worker("a"), 0).value();
  EXPECT_EQ(members.Missing(/*declared=*/true), "server 1, worker 1");
}

TEST(MembershipTest, MissingNamesTenPlacesAndCountsTheOthers) {
  const Membership members(2, 1000, 1'000'000);
  EXPECT_EQ(members.Missing(/*declared=*/false),
            "server 0, server 1, worker 0, worker 1, worker 2, worker 3, "
            "worker 4, worker 5, worker 6, worker 7 and 993 more");
}

}  // namespace
}  // namespace tributary
