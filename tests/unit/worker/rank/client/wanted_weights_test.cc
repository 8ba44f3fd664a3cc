// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/wanted_weights.h"

#include <gtest/gtest.h>

#include <optional>

namespace tributary {
namespace {

// One server has the contributions to steps 1 to 4, the other to steps 1 to 3.
RankProgress BetweenSteps() {
  RankProgress progress;
  progress.Add({.initialized = true, .steps = 4, .begun = 4});
  progress.Add({.initialized = true, .steps = 3, .begun = 3});
  return progress;
}

TEST(WantedWeightsTest, AStepIsFinishedOnceEveryServerHasIt) {
  EXPECT_EQ(BetweenSteps().steps, 3);
  EXPECT_EQ(BetweenSteps().begun, 4);
}

TEST(WantedWeightsTest,
     OneServerWithoutWeightsMakesTheRankGiveTheFirstWeights) {
  RankProgress progress = BetweenSteps();
  EXPECT_TRUE(progress.initialized);
  progress.Add({.initialized = false, .steps = 0, .begun = 0});
  EXPECT_FALSE(progress.initialized);
}

TEST(WantedWeightsTest, AStepThatSomeServersHaveStartsFromTheSameWeightsAgain) {
  const WantedWeights wanted =
      StartingWeights(ApplyMode::kBulk, BetweenSteps());
  EXPECT_EQ(wanted.kind, WantedWeights::Kind::kExactly);
  EXPECT_EQ(wanted.number, 3);
  EXPECT_EQ(FinishedBeforePull(ApplyMode::kBulk, BetweenSteps()), 3);
}

TEST(WantedWeightsTest, WithBackupWorkersThePullTellsWhichStepIsOpen) {
  const WantedWeights wanted =
      StartingWeights(ApplyMode::kBackup, BetweenSteps());
  EXPECT_EQ(wanted.kind, WantedWeights::Kind::kAtLeast);
  EXPECT_EQ(wanted.number, 0);
  EXPECT_EQ(FinishedBeforePull(ApplyMode::kBackup, BetweenSteps()),
            std::nullopt);
}

TEST(WantedWeightsTest, OnlyBackupWorkersAreLeftBehindAndMustCatchUp) {
  EXPECT_EQ(CatchUp(ApplyMode::kBackup, 3, /*newest_version=*/5)->number, 3);
  EXPECT_EQ(CatchUp(ApplyMode::kBackup, 3, /*newest_version=*/3), std::nullopt);
  EXPECT_EQ(CatchUp(ApplyMode::kSeparate, 3, /*newest_version=*/5),
            std::nullopt);
}

}  // namespace
}  // namespace tributary
