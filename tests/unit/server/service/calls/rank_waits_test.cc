// SPDX-License-Identifier: Apache-2.0
#include "server/service/calls/rank_waits.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(RankWaitsTest, TheTimeBetweenLooksBelongsToWhoIsMissing) {
  RankWaits waits(/*num_workers=*/2);
  waits.Sample(0, {});
  waits.Sample(kSecond / 2, {1});
  EXPECT_TRUE(waits.waiting(1));
  waits.Sample(kSecond, {1});
  waits.Sample(2 * kSecond, {});
  EXPECT_FALSE(waits.waiting(1));
  EXPECT_DOUBLE_EQ(waits.seconds(1), 1.0);
  EXPECT_DOUBLE_EQ(waits.seconds(0), 0.0);
}

TEST(RankWaitsTest, NobodyIsLateWhileMoreThanHalfAreMissing) {
  RankWaits waits(/*num_workers=*/4);
  waits.Sample(0, {});
  waits.Sample(kSecond, {1, 2, 3});
  EXPECT_FALSE(waits.waiting(2));
  EXPECT_DOUBLE_EQ(waits.seconds(2), 0.0);
  waits.Sample(2 * kSecond, {2, 3});
  EXPECT_DOUBLE_EQ(waits.seconds(2), 1.0);
  EXPECT_DOUBLE_EQ(waits.seconds(3), 1.0);
}

TEST(RankWaitsTest, APauseOfThisProcessIsNobodysFault) {
  RankWaits waits(/*num_workers=*/2);
  waits.Sample(0, {});
  waits.Sample(10 * kSecond, {0});
  EXPECT_DOUBLE_EQ(waits.seconds(0), 1.0);
}

}  // namespace
}  // namespace tributary
