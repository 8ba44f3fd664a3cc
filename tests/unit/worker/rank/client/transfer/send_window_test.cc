// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer/send_window.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr absl::Duration kMs = absl::Milliseconds(1);

TEST(SendWindowTest, WithoutALimitEverythingMayBeSent) {
  SendWindow window(0);
  window.Begin(0 * kMs);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(window.MaySend(0));
    window.Sent(0, 0 * kMs);
  }
}

TEST(SendWindowTest, EachServerHasItsOwnLimit) {
  SendWindow window(2);
  window.Begin(0 * kMs);
  window.Sent(0, 0 * kMs);
  EXPECT_TRUE(window.MaySend(0));
  window.Sent(0, 0 * kMs);
  EXPECT_FALSE(window.MaySend(0));
  EXPECT_TRUE(window.MaySend(1));
  window.Ended(0, 1 * kMs);
  EXPECT_TRUE(window.MaySend(0));
}

TEST(SendWindowTest, ALiftLastsForTheRoundAndForMoreRoundsEachTime) {
  SendWindow window(1);
  for (const int pause : {1, 3, 7, 15}) {
    window.Begin(0 * kMs);
    window.Sent(0, 0 * kMs);
    EXPECT_FALSE(window.MaySend(0)) << pause;
    window.Lift();
    EXPECT_TRUE(window.MaySend(0)) << pause;
    for (int round = 0; round < pause; ++round) {
      window.Begin(0 * kMs);
      window.Sent(0, 0 * kMs);
      EXPECT_TRUE(window.MaySend(0)) << pause << " " << round;
    }
  }
  // After a round without Lift, the next pause is short again.
  window.Begin(0 * kMs);
  window.Sent(0, 0 * kMs);
  EXPECT_FALSE(window.MaySend(0));
  window.Ended(0, 1 * kMs);
  window.Begin(0 * kMs);
  window.Lift();
  window.Begin(0 * kMs);
  window.Begin(0 * kMs);
  window.Sent(0, 0 * kMs);
  EXPECT_FALSE(window.MaySend(0));
}

TEST(SendWindowTest, ALiftAfterSeveralDoesNotWaitForever) {
  SendWindow window(1);
  for (int i = 0; i < 20; ++i) {
    window.Begin(0 * kMs);
    window.Sent(0, 0 * kMs);
    if (window.MaySend(0)) continue;
    window.Lift();
  }
  int rounds = 0;
  while (true) {
    window.Begin(0 * kMs);
    window.Sent(0, 0 * kMs);
    if (!window.MaySend(0)) break;
    ASSERT_LT(++rounds, 1024);
  }
}

// The patience is four times the mean answer time of the last limited round,
// from 10 to 250 ms, counted from the last send or answer.
TEST(SendWindowTest, ThePatienceFollowsTheMeanAnswer) {
  SendWindow window(2);
  window.Begin(0 * kMs);
  EXPECT_EQ(window.LiftIn(100 * kMs), 150 * kMs);
  window.Sent(0, 10 * kMs);
  window.Sent(1, 10 * kMs);
  window.Ended(1, 20 * kMs);  // 10 ms
  window.Ended(0, 40 * kMs);  // 30 ms
  EXPECT_EQ(window.LiftIn(100 * kMs), 190 * kMs);

  window.Begin(100 * kMs);
  EXPECT_EQ(window.LiftIn(100 * kMs), 80 * kMs);
  window.Sent(0, 110 * kMs);
  EXPECT_EQ(window.LiftIn(120 * kMs), 70 * kMs);
  window.Ended(0, 111 * kMs);  // 1 ms

  window.Begin(200 * kMs);
  EXPECT_EQ(window.LiftIn(200 * kMs), 10 * kMs);
  window.Sent(0, 200 * kMs);
  window.Ended(0, 900 * kMs);  // 700 ms
  window.Begin(900 * kMs);
  EXPECT_EQ(window.LiftIn(900 * kMs), 250 * kMs);
}

}  // namespace
}  // namespace tributary
