// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/divergence_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tributary {
namespace {

using ::testing::HasSubstr;

TEST(DivergenceWatchTest, SaysOnceThatTheLossIsFarAboveWhereItBegan) {
  DivergenceWatch watch;
  for (int64_t step = 1; step <= 50; ++step) watch.Add(step, 2.0);
  EXPECT_EQ(watch.TakeNotice(), "");
  for (int64_t step = 51; step <= 59; ++step) watch.Add(step, 21.0);
  EXPECT_EQ(watch.TakeNotice(), "") << "mean 19.1";
  watch.Add(60, 21.0);
  EXPECT_EQ(watch.TakeNotice(),
            "training diverges: the mean loss of the last 10 steps to step 60 "
            "is 21, that of step 1 was 2; a lower learning_rate or a clip_norm "
            "may help");
  watch.Add(61, 1e9);
  EXPECT_EQ(watch.TakeNotice(), "") << "said before";
}

TEST(DivergenceWatchTest, TheFirstStepsMayDivergeAlready) {
  DivergenceWatch watch;
  watch.Add(1, 2.3);
  for (int64_t step = 2; step <= 10; ++step) watch.Add(step, 1e6);
  EXPECT_THAT(watch.TakeNotice(), HasSubstr("that of step 1 was 2.3"));
}

// The loss of a single step of a trained model may be far below the others.
TEST(DivergenceWatchTest, AResumedJobIsComparedWithTheFirstStepOfAll) {
  DivergenceWatch before;
  before.Add(1, 4.6);
  DivergenceWatch resumed;
  resumed.Begin(before.first());
  resumed.Add(1097, 0.0002);
  for (int64_t step = 1098; step <= 1110; ++step) resumed.Add(step, 0.003);
  EXPECT_EQ(resumed.TakeNotice(), "");
  for (int64_t step = 1111; step <= 1130; ++step) resumed.Add(step, 50);
  EXPECT_THAT(resumed.TakeNotice(), HasSubstr("that of step 1 was 4.6"));
}

TEST(DivergenceWatchTest, OneBadBatchIsNoDivergence) {
  DivergenceWatch watch;
  for (int64_t step = 1; step <= 100; ++step) {
    watch.Add(step, step % 20 == 0 ? 100.0 : 2.0);
  }
  EXPECT_EQ(watch.TakeNotice(), "");
}

TEST(DivergenceWatchTest, ALossThatIsNoNumberDiverges) {
  DivergenceWatch watch;
  watch.Add(3, -std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(watch.TakeNotice(), HasSubstr("the loss of step 3 is nan;"));
}

}  // namespace
}  // namespace tributary
