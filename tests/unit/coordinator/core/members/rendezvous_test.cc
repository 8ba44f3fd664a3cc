// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/members/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/member/answer_limits.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

v1::ExchangeRequest Of(uint32_t rank, const std::vector<uint32_t>& ranks,
                       std::string payload, std::string group = "data") {
  v1::ExchangeRequest request;
  request.set_group(std::move(group));
  request.set_rank(rank);
  request.mutable_ranks()->Add(ranks.begin(), ranks.end());
  request.set_payload(std::move(payload));
  return request;
}

std::vector<std::string> To(uint32_t rank, const Rendezvous& rendezvous) {
  const auto answer = rendezvous.AnswerTo(rank, "data");
  if (!answer) return {"nothing"};
  return {answer->payloads().begin(), answer->payloads().end()};
}

TEST(RendezvousTest, EverybodysPayloadIsThereOnceTheLastHasCome) {
  const std::vector<uint32_t> ranks = {1, 5, 3};
  Rendezvous rendezvous(6);
  rendezvous.Begin(1);
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(3, ranks, "three")));
  EXPECT_EQ(rendezvous.Missing("data"), (std::vector<uint32_t>{1, 5}));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(1, ranks, "one")));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(1, ranks, "one")));  // again
  EXPECT_FALSE(rendezvous.IsComplete("data"));
  EXPECT_THAT(To(1, rendezvous), ElementsAre("nothing"));
  EXPECT_EQ(rendezvous.Missing("data"), std::vector<uint32_t>{5});
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(5, ranks, "five")));
  EXPECT_TRUE(rendezvous.IsComplete("data"));
  EXPECT_THAT(To(5, rendezvous), ElementsAre("one", "five", "three"));
  EXPECT_THAT(To(2, rendezvous), ElementsAre("nothing"));
  EXPECT_FALSE(rendezvous.IsComplete("tensor"));
}

v1::ExchangeRequest With(v1::ExchangeRequest request,
                         const std::vector<std::string>& parts) {
  request.mutable_parts()->Add(parts.begin(), parts.end());
  return request;
}

TEST(RendezvousTest, EachRankGetsThePartsThatAreMeantForIt) {
  Rendezvous rendezvous(3);
  TRIBUTARY_EXPECT_OK(rendezvous.Put(With(Of(2, {2, 0}, "c"), {"", " to 0"})));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, {2, 0}, "a")));
  EXPECT_THAT(To(0, rendezvous), ElementsAre("c to 0", "a"));
  EXPECT_THAT(To(2, rendezvous), ElementsAre("c", "a"));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(With(Of(2, {2, 0}, "c"), {"", " to 0"})));
  EXPECT_THAT(rendezvous.Put(With(Of(2, {2, 0}, "c"), {"", " to 1"})),
              StatusIs(absl::StatusCode::kFailedPrecondition, "is complete"));
}

TEST(RendezvousTest, PartsAreForAllRanksAndAreSmall) {
  Rendezvous rendezvous(2);
  for (const std::vector<std::string>& parts :
       {std::vector<std::string>{"one"},
        {"", "", ""},
        {"", std::string(kMaxPartBytes + 1, 'x')}}) {
    EXPECT_THAT(rendezvous.Put(With(Of(0, {0, 1}, ""), parts)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("rank 0 sends ", parts.size(),
                                      " parts to 2 ranks; wanted none or one "
                                      "for each, of at most 512 bytes")));
  }
}

TEST(RendezvousTest, AnotherProcessMayTakeAPlaceUntilTheGroupIsComplete) {
  Rendezvous rendezvous(2);
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, {0, 1}, "first")));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, {0, 1}, "second")));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(1, {0, 1}, "one")));
  EXPECT_THAT(To(0, rendezvous), ElementsAre("second", "one"));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, {0, 1}, "second")));
  EXPECT_THAT(rendezvous.Put(Of(0, {0, 1}, "third")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "group data is complete, with another rank 0"));
}

TEST(RendezvousTest, ANewPlanForgetsTheGroupsOfTheOld) {
  Rendezvous rendezvous(2);
  rendezvous.Begin(1);
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, {0}, "zero")));
  rendezvous.Begin(1);
  EXPECT_TRUE(rendezvous.IsComplete("data"));
  rendezvous.Begin(2);
  EXPECT_FALSE(rendezvous.IsComplete("data"));
}

TEST(RendezvousTest, WhatIsOutOfBoundsIsRefused) {
  Rendezvous rendezvous(2);
  const auto invalid = absl::StatusCode::kInvalidArgument;
  for (const v1::ExchangeRequest& request :
       {Of(0, {}, ""), Of(1, {0}, ""), Of(0, {0, 2}, ""), Of(0, {0, 0}, "")}) {
    EXPECT_THAT(rendezvous.Put(request),
                StatusIs(invalid, "a group has different ranks below 2"));
  }
  EXPECT_THAT(
      rendezvous.Put(Of(0, {0, 1}, std::string(kMaxPayloadBytes + 1, 'x'))),
      StatusIs(invalid, "a payload has at most 65536 bytes"));
  EXPECT_THAT(
      rendezvous.Put(
          Of(0, {0, 1}, "", std::string(Rendezvous::kMaxNameBytes + 1, 'x'))),
      StatusIs(invalid, "and a group's name 64, got 0 and 65"));
  TRIBUTARY_EXPECT_OK(rendezvous.Put(Of(0, {0, 1}, "")));
  EXPECT_THAT(rendezvous.Put(Of(0, {0}, "")),
              StatusIs(invalid, "group data has ranks 0, 1, got rank 0"));
  EXPECT_THAT(rendezvous.Put(Of(0, {1, 0}, "")),
              StatusIs(invalid, "group data has ranks 0, 1, got ranks 1, 0"));
  for (size_t i = 1; i < Rendezvous::kMaxGroups; ++i) {
    TRIBUTARY_ASSERT_OK(rendezvous.Put(Of(0, {0}, "", std::to_string(i))));
  }
  EXPECT_THAT(rendezvous.Put(Of(0, {0}, "", "more")),
              StatusIs(absl::StatusCode::kInvalidArgument, "4096 groups"));
}

}  // namespace
}  // namespace tributary
