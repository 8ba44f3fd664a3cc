// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/batches/step_plan.h"

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

StepPlan MakePlan(const StepPlan::Options& options) {
  auto plan = StepPlan::Create(options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

// The samples of all ranks.
int64_t Samples(const StepPlan& plan, int64_t step, int world) {
  int64_t samples = 0;
  for (int r = 0; r < world; ++r) samples += plan.RankSamples(step, r);
  return samples;
}

TEST(StepPlanTest, WithoutAccumulationAStepIsAGlobalBatch) {
  const StepPlan plan =
      MakePlan({.cut = {/*rows=*/60000, /*global_batch=*/128, /*world=*/2},
                .epochs = 5});
  EXPECT_EQ(plan.batches_per_epoch(), 469);
  EXPECT_EQ(plan.steps_per_epoch(), 469);
  EXPECT_EQ(plan.total_steps(), 2345);
  const StepRange range = plan.At(470);
  EXPECT_EQ(range.epoch, 1);
  EXPECT_EQ(range.first_batch, 1);
  EXPECT_EQ(range.batches, 1);
  EXPECT_EQ(Samples(plan, 467, 2), 128);
  EXPECT_EQ(Samples(plan, 468, 2), 96);  // 60000 - 468 * 128
}

TEST(StepPlanTest, AccumulationNeverCrossesAnEpoch) {
  // 10 rows in batches of 3: 3, 3, 3, 1; two batches a step: 6 and 4.
  const StepPlan plan =
      MakePlan({.cut = {/*rows=*/10, /*global_batch=*/3, /*world=*/2},
                .accumulation = 2,
                .epochs = 2});
  EXPECT_EQ(plan.steps_per_epoch(), 2);
  EXPECT_EQ(plan.total_steps(), 4);
  EXPECT_EQ(plan.RankSamples(0, 0), 4);  // 2 + 2
  EXPECT_EQ(plan.RankSamples(0, 1), 2);  // 1 + 1
  EXPECT_EQ(plan.RankSamples(1, 0), 3);  // 2 + 1
  EXPECT_EQ(plan.RankSamples(1, 1), 1);  // 1 + 0
  const StepRange range = plan.At(3);
  EXPECT_EQ(range.epoch, 1);
  EXPECT_EQ(range.first_batch, 2);
  EXPECT_EQ(range.batches, 2);
}

TEST(StepPlanTest, TheLastStepOfAnEpochMayHaveFewerMicroBatches) {
  const StepPlan plan =
      MakePlan({.cut = {10, 3, 1}, .accumulation = 3, .epochs = 2});
  EXPECT_EQ(plan.At(0).batches, 3);
  EXPECT_EQ(plan.At(1).batches, 1);
  EXPECT_EQ(plan.RankSamples(1, 0), 1);
  // The next epoch begins with its own first batch all the same.
  EXPECT_EQ(plan.At(2).epoch, 1);
  EXPECT_EQ(plan.At(2).first_batch, 0);
  EXPECT_EQ(plan.At(2).batches, 3);
}

TEST(StepPlanTest, StepsMayEndWithinAnEpochOrRunOnThroughMany) {
  const StepPlan plan = MakePlan({.cut = {10, 5, 1}, .steps = 7});
  EXPECT_EQ(plan.total_steps(), 7);
  EXPECT_EQ(plan.At(6).epoch, 3);
  EXPECT_EQ(plan.At(6).first_batch, 0);
}

TEST(StepPlanTest, SamplesOfRanksAddUpToEveryRowOncePerEpoch) {
  for (int64_t accumulation : {1, 2, 3, 100}) {
    for (int world : {1, 2, 5}) {
      const StepPlan plan = MakePlan(
          {.cut = {101, 7, world}, .accumulation = accumulation, .epochs = 1});
      int64_t samples = 0;
      for (int64_t step = 0; step < plan.total_steps(); ++step) {
        samples += Samples(plan, step, world);
        EXPECT_EQ(plan.AllSamples(step), Samples(plan, step, world));
      }
      EXPECT_EQ(samples, 101);
    }
  }
}

// 64 rows: after two steps of 8 rows the job goes on with steps of 2 x 8.
TEST(StepPlanTest, AJobThatGoesOnTakesEveryRowThatIsLeftOnce) {
  DataCourse course(DataStretch{.rows = 64, .global_batch = 8});
  course.Add({.step = 2,
              .begin = {0, 16},
              .rows = 64,
              .global_batch = 8,
              .accumulation = 2});
  for (int world : {1, 3}) {
    const StepPlan plan = MakePlan({.cut = {64, 8, world},
                                    .accumulation = 2,
                                    .epochs = 2,
                                    .course = course});
    EXPECT_EQ(plan.total_steps(), 2 + 3 + 4);
    EXPECT_EQ(plan.steps_per_epoch(), 4);
    std::vector<int> taken(128);
    for (int64_t step = 2; step < plan.total_steps(); ++step) {
      const StepRange range = plan.At(step);
      for (int64_t i = 0; i < range.batches * 8; ++i) {
        ++taken[range.epoch * 64 + range.first_batch * 8 + i];
      }
    }
    for (int row = 0; row < 128; ++row) {
      EXPECT_EQ(taken[row], row < 16 ? 0 : 1) << row;
    }
  }
}

TEST(StepPlanTest, ImpossibleOptionsAreRefused) {
  const auto message = [](const StepPlan::Options& options) {
    return std::string(StepPlan::Create(options).status().message());
  };
  const BatchCut cut{10, 5, 1};
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(message({.cut = {0, 5, 1}, .epochs = 1}), HasSubstr("rows"));
  EXPECT_THAT(message({.cut = cut}), HasSubstr("0 epochs and 0 steps"));
  EXPECT_THAT(message({.cut = cut, .epochs = 1, .steps = 1}),
              HasSubstr("1 epochs and 1 steps"));
  EXPECT_THAT(message({.cut = cut, .accumulation = 0, .epochs = 1}),
              HasSubstr("at least 1 micro-batch"));
  EXPECT_THAT(message({.cut = cut, .epochs = kMax}),
              HasSubstr("more steps than can be counted"));
  EXPECT_EQ(
      MakePlan({.cut = cut, .accumulation = kMax, .epochs = 1}).total_steps(),
      1);
}

}  // namespace
}  // namespace tributary
