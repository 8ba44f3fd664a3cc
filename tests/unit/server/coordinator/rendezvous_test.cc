#include "server/coordinator/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

v1::ExchangeRequest Of(uint32_t member, uint32_t size, std::string payload,
                       std::string group = "data") {
  v1::ExchangeRequest request;
  request.set_group(std::move(group));
  request.set_member(member);
  request.set_size(size);
  request.set_payload(std::move(payload));
  return request;
}

TEST(RendezvousTest, EverybodysPayloadIsThereOnceTheLastHasCome) {
  Rendezvous rendezvous(4);
  rendezvous.Begin(1);
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(2, 3, "two")));
  EXPECT_EQ(rendezvous.Missing("data"), "0, 1");
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, 3, "zero")));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, 3, "zero")));  // again
  EXPECT_EQ(rendezvous.Complete("data"), nullptr);
  EXPECT_EQ(rendezvous.Missing("data"), "1");
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(1, 3, "one")));
  ASSERT_NE(rendezvous.Complete("data"), nullptr);
  EXPECT_THAT(rendezvous.Complete("data")->payloads(),
              ElementsAre("zero", "one", "two"));
  EXPECT_EQ(rendezvous.Complete("tensor"), nullptr);
}

TEST(RendezvousTest, AnotherProcessMayTakeAPlaceUntilTheGroupIsComplete) {
  Rendezvous rendezvous(2);
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, 2, "first")));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, 2, "second")));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(1, 2, "one")));
  EXPECT_THAT(rendezvous.Complete("data")->payloads(),
              ElementsAre("second", "one"));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, 2, "second")));
  EXPECT_THAT(rendezvous.Put(Of(0, 2, "third")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "group data is complete, with another member 0"));
}

TEST(RendezvousTest, ANewPlanForgetsTheGroupsOfTheOld) {
  Rendezvous rendezvous(2);
  rendezvous.Begin(1);
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, 1, "zero")));
  rendezvous.Begin(1);
  EXPECT_NE(rendezvous.Complete("data"), nullptr);
  rendezvous.Begin(2);
  EXPECT_EQ(rendezvous.Complete("data"), nullptr);
}

TEST(RendezvousTest, WhatIsOutOfBoundsIsRefused) {
  Rendezvous rendezvous(2);
  const auto invalid = absl::StatusCode::kInvalidArgument;
  for (const v1::ExchangeRequest& request :
       {Of(0, 0, ""), Of(2, 2, ""), Of(0, 3, "")}) {
    EXPECT_THAT(rendezvous.Put(request),
                StatusIs(invalid, "a group has 1 to 2 members"));
  }
  EXPECT_THAT(rendezvous.Put(
                  Of(0, 2, std::string(Rendezvous::kMaxPayloadBytes + 1, 'x'))),
              StatusIs(invalid, "a payload has at most 65536 bytes"));
  EXPECT_THAT(rendezvous.Put(Of(
                  0, 2, "", std::string(Rendezvous::kMaxNameBytes + 1, 'x'))),
              StatusIs(invalid, "and a group's name 64, got 0 and 65"));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, 2, "")));
  EXPECT_THAT(rendezvous.Put(Of(0, 1, "")),
              StatusIs(invalid, "group data has 2 members, got 1"));
  for (size_t i = 1; i < Rendezvous::kMaxGroups; ++i) {
    TRIBUTARY_ASSERT_OK(rendezvous.Put(Of(0, 1, "", std::to_string(i))));
  }
  EXPECT_THAT(rendezvous.Put(Of(0, 1, "", "more")),
              StatusIs(absl::StatusCode::kResourceExhausted, "4096 groups"));
}

}  // namespace
}  // namespace tributary
