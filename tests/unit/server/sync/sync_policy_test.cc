// SPDX-License-Identifier: Apache-2.0
#include "server/sync/sync_policy.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

VectorClock RankClock(std::initializer_list<int64_t> steps) {
  VectorClock clock(static_cast<int>(steps.size()));
  int worker = 0;
  for (int64_t s : steps) {
    for (int64_t i = 0; i < s; ++i) clock.Advance(worker);
    ++worker;
  }
  return clock;
}

TEST(BulkSynchronousTest, AStepWaitsForEveryWorkerAndReadersForTheStep) {
  const BulkSynchronous bsp;
  EXPECT_FALSE(bsp.MayApply(RankClock({3, 2, 3}), /*step=*/2));
  EXPECT_TRUE(bsp.MayApply(RankClock({3, 3, 3}), /*step=*/2));
  EXPECT_FALSE(bsp.MayPull(RankClock({3, 2, 3}), /*finished=*/3));
  EXPECT_TRUE(bsp.MayPull(RankClock({3, 3, 3}), /*finished=*/3));
  EXPECT_TRUE(bsp.gathers());
  EXPECT_FALSE(bsp.drops_late());
}

TEST(BulkSynchronousTest, WithBackupWorkersTheFirstOnesSuffice) {
  const BulkSynchronous bsp(/*backup_workers=*/1);
  EXPECT_FALSE(bsp.MayApply(RankClock({1, 0, 0}), /*step=*/0));
  EXPECT_TRUE(bsp.MayApply(RankClock({1, 0, 1}), /*step=*/0));
  EXPECT_TRUE(bsp.drops_late());
}

TEST(StaleSynchronousTest, FastWorkerWaitsAtTheBound) {
  const StaleSynchronous ssp(/*staleness=*/1);
  EXPECT_TRUE(ssp.MayPull(RankClock({1, 0}), /*finished=*/1));
  EXPECT_FALSE(ssp.MayPull(RankClock({2, 0}), /*finished=*/2));
  EXPECT_TRUE(ssp.MayPull(RankClock({2, 1}), /*finished=*/2));
  EXPECT_TRUE(ssp.MayApply(RankClock({2, 0}), /*step=*/1));
  EXPECT_FALSE(ssp.gathers());
}

TEST(StaleSynchronousTest, EverybodyMeetsAtABarrier) {
  const StaleSynchronous ssp(/*staleness=*/5,
                             [](int64_t finished) { return finished == 4; });
  EXPECT_TRUE(ssp.MayPull(RankClock({3, 0}), /*finished=*/3));
  EXPECT_FALSE(ssp.MayPull(RankClock({4, 3}), /*finished=*/4));
  EXPECT_TRUE(ssp.MayPull(RankClock({4, 4}), /*finished=*/4));
}

TEST(AsynchronousTest, NobodyWaitsButAtABarrier) {
  EXPECT_TRUE(Asynchronous().MayPull(RankClock({90, 0}), /*finished=*/90));
  const Asynchronous barred([](int64_t finished) { return finished == 10; });
  EXPECT_TRUE(barred.MayPull(RankClock({9, 0}), /*finished=*/9));
  EXPECT_FALSE(barred.MayPull(RankClock({10, 9}), /*finished=*/10));
}

}  // namespace
}  // namespace tributary
