#include "worker/client/rank_clock.h"

#include <gtest/gtest.h>

#include <optional>

namespace tributary {
namespace {

// One server has the contributions to steps 1 to 4, the other to steps 1 to 3.
RankClock BetweenSteps() {
  RankClock clock;
  clock.Add({.initialized = true, .steps = 4, .begun = 4});
  clock.Add({.initialized = true, .steps = 3, .begun = 3});
  return clock;
}

TEST(RankClockTest, AStepIsFinishedOnceEveryServerHasIt) {
  EXPECT_EQ(BetweenSteps().steps, 3);
  EXPECT_EQ(BetweenSteps().begun, 4);
}

TEST(RankClockTest, OneServerWithoutWeightsMakesTheRankGiveTheFirstWeights) {
  RankClock clock = BetweenSteps();
  EXPECT_TRUE(clock.initialized);
  clock.Add({.initialized = false, .steps = 0, .begun = 0});
  EXPECT_FALSE(clock.initialized);
}

TEST(RankClockTest, AStepThatSomeServersHaveStartsFromTheSameWeightsAgain) {
  const WantedWeights wanted = BetweenSteps().Start(ApplyMode::kBulk);
  EXPECT_EQ(wanted.kind, WantedWeights::Kind::kExactly);
  EXPECT_EQ(wanted.number, 3);
  EXPECT_EQ(BetweenSteps().FinishedBeforePull(ApplyMode::kBulk), 3);
}

TEST(RankClockTest, WithBackupWorkersThePullTellsWhichStepIsOpen) {
  const WantedWeights wanted = BetweenSteps().Start(ApplyMode::kBackup);
  EXPECT_EQ(wanted.kind, WantedWeights::Kind::kAtLeast);
  EXPECT_EQ(wanted.number, 0);
  EXPECT_EQ(BetweenSteps().FinishedBeforePull(ApplyMode::kBackup),
            std::nullopt);
}

TEST(RankClockTest, OnlyBackupWorkersAreLeftBehindAndMustCatchUp) {
  EXPECT_EQ(CatchUp(ApplyMode::kBackup, 3, /*newest_version=*/5)->number, 5);
  EXPECT_EQ(CatchUp(ApplyMode::kBackup, 3, /*newest_version=*/3), std::nullopt);
  EXPECT_EQ(CatchUp(ApplyMode::kSeparate, 3, /*newest_version=*/5),
            std::nullopt);
}

}  // namespace
}  // namespace tributary
