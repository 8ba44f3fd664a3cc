// SPDX-License-Identifier: Apache-2.0
#include "server/sync/sync_policy.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

VectorClock Clock(std::initializer_list<int64_t> steps) {
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
  EXPECT_FALSE(bsp.MayApply(Clock({3, 2, 3}), /*step=*/2));
  EXPECT_TRUE(bsp.MayApply(Clock({3, 3, 3}), /*step=*/2));
  EXPECT_FALSE(bsp.MayPull(Clock({3, 2, 3}), /*finished=*/3));
  EXPECT_TRUE(bsp.MayPull(Clock({3, 3, 3}), /*finished=*/3));
  EXPECT_TRUE(bsp.gathers());
  EXPECT_FALSE(bsp.drops_late());
}

TEST(BulkSynchronousTest, WithBackupWorkersTheFirstOnesSuffice) {
  const BulkSynchronous bsp(/*backup_workers=*/1);
  EXPECT_FALSE(bsp.MayApply(Clock({1, 0, 0}), /*step=*/0));
  EXPECT_TRUE(bsp.MayApply(Clock({1, 0, 1}), /*step=*/0));
  EXPECT_TRUE(bsp.drops_late());
}

TEST(StaleSynchronousTest, FastWorkerWaitsAtTheBound) {
  const StaleSynchronous ssp(/*staleness=*/1);
  EXPECT_TRUE(ssp.MayPull(Clock({1, 0}), /*finished=*/1));
  EXPECT_FALSE(ssp.MayPull(Clock({2, 0}), /*finished=*/2));
  EXPECT_TRUE(ssp.MayPull(Clock({2, 1}), /*finished=*/2));
  EXPECT_TRUE(ssp.MayApply(Clock({2, 0}), /*step=*/1));
  EXPECT_FALSE(ssp.gathers());
}

TEST(StaleSynchronousTest, EverybodyMeetsAtABarrier) {
  const StaleSynchronous ssp(/*staleness=*/5, /*barrier_steps=*/4);
  EXPECT_TRUE(ssp.MayPull(Clock({3, 0}), /*finished=*/3));
  EXPECT_FALSE(ssp.MayPull(Clock({4, 3}), /*finished=*/4));
  EXPECT_TRUE(ssp.MayPull(Clock({4, 4}), /*finished=*/4));
}

TEST(AsynchronousTest, NobodyWaitsButAtABarrier) {
  EXPECT_TRUE(Asynchronous().MayPull(Clock({90, 0}), /*finished=*/90));
  const Asynchronous barred(/*barrier_steps=*/10);
  EXPECT_TRUE(barred.MayPull(Clock({9, 0}), /*finished=*/9));
  EXPECT_FALSE(barred.MayPull(Clock({10, 9}), /*finished=*/10));
}

}  // namespace
}  // namespace tributary
