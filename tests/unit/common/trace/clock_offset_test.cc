// SPDX-License-Identifier: Apache-2.0
#include "common/trace/clock_offset.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

using Estimate = ClockOffset::Estimate;

constexpr int64_t kSecond = 1'000'000;

TEST(ClockOffsetTest, ThereIsNoneBeforeTheFirstSample) {
  EXPECT_FALSE(ClockOffset().At(0).has_value());
}

TEST(ClockOffsetTest, IsTheMeanOfBothWays) {
  ClockOffset offset;
  offset.Add(
      {.sent = 1000, .received = 5300, .answered = 5400, .returned = 1300});
  // There 4300 and back 4100: 4200. The round trip is 300 - 100 = 200.
  EXPECT_EQ(*offset.At(1300), (Estimate{4200, 100}));
}

TEST(ClockOffsetTest, MayBeNegativeAndRoundsTheUncertaintyUp) {
  ClockOffset offset;
  offset.Add({.sent = 900, .received = 100, .answered = 100, .returned = 905});
  // There -800 and back -805: -802.5. The round trip is 5.
  EXPECT_EQ(*offset.At(905), (Estimate{-802, 3}));
}

// The other clock is 1000 ahead. The requests take 10, 1 and 30, the answers
// 30, 3 and 10.
TEST(ClockOffsetTest, TheShortestRoundTripCounts) {
  ClockOffset offset;
  offset.Add({.sent = 0, .received = 1010, .answered = 1010, .returned = 40});
  EXPECT_EQ(*offset.At(40), (Estimate{990, 20}));
  offset.Add(
      {.sent = 100, .received = 1101, .answered = 1101, .returned = 104});
  EXPECT_EQ(*offset.At(104), (Estimate{999, 2}));
  offset.Add(
      {.sent = 200, .received = 1230, .answered = 1230, .returned = 240});
  EXPECT_EQ(*offset.At(240), (Estimate{999, 2}));
}

TEST(ClockOffsetTest, ClocksDriftSoAnOldSampleGivesWay) {
  ClockOffset offset;
  offset.Add({.sent = 0, .received = 10, .answered = 10, .returned = 20});
  EXPECT_EQ(*offset.At(20), (Estimate{0, 10}));
  // 15 microseconds a second: after 2.2 s, 33.
  EXPECT_EQ(*offset.At(20 + 22 * kSecond / 10), (Estimate{0, 43}));
  // Uncertain by 50, after one second against 25 and after three against 55.
  const auto add_at = [&offset](int64_t sent) {
    offset.Add({.sent = sent,
                .received = sent + 57,
                .answered = sent + 57,
                .returned = sent + 100});
    return *offset.At(sent + 100);
  };
  EXPECT_EQ(add_at(1 * kSecond), (Estimate{0, 25}));
  EXPECT_EQ(add_at(3 * kSecond), (Estimate{7, 50}));
}

TEST(ClockOffsetTest, ImpossibleSamplesAreIgnored) {
  constexpr int64_t kFar = INT64_MAX;
  ClockOffset offset;
  // Exchanges that end before they begin, here and there; an answer that took
  // longer than the whole round trip; times that would overflow.
  offset.Add({.sent = 10, .received = 5, .answered = 5, .returned = 9});
  offset.Add({.sent = 10, .received = 6, .answered = 5, .returned = 20});
  offset.Add({.sent = 10, .received = 5, .answered = 16, .returned = 20});
  offset.Add(
      {.sent = -kFar, .received = kFar, .answered = kFar, .returned = 9});
  offset.Add({.sent = 10, .received = -kFar, .answered = 5, .returned = 20});
  EXPECT_FALSE(offset.At(20).has_value());
}

}  // namespace
}  // namespace tributary
