// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/skipped_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SkippedStepsTest, TheFirstTheTenthAndTheHundredthAreTold) {
  SkippedSteps skipped;
  skipped.Add(7);
  EXPECT_THAT(
      skipped.TakeNotices(),
      ElementsAre(
          "step 7 changed nothing, because a gradient was not finite; "
          "the logs of the servers, or else of the workers, name the tensor"));
  for (int64_t step = 8; step < 1000; ++step) skipped.Add(step);
  EXPECT_THAT(
      skipped.TakeNotices(),
      ElementsAre(HasSubstr("step 16 changed nothing"),
                  "step 106 changed nothing, because a gradient was not finite "
                  "(100 such steps so far); the logs of the servers, or else "
                  "of the workers, name the tensor"));
  EXPECT_THAT(skipped.TakeNotices(), IsEmpty());
  EXPECT_EQ(skipped.count(), 993);
}

TEST(SkippedStepsTest, EarlierStepsCount) {
  SkippedSteps skipped(/*earlier=*/3);
  skipped.Continue(5);
  EXPECT_EQ(skipped.count(), 8);
  for (int64_t step = 21; step <= 24; ++step) skipped.Add(step);
  EXPECT_EQ(skipped.count(), 12);
  EXPECT_THAT(skipped.TakeNotices(),
              ElementsAre(HasSubstr("step 21 changed nothing, because a "
                                    "gradient was not finite (9 such steps"),
                          HasSubstr("step 22 changed nothing, because a "
                                    "gradient was not finite (10 such steps")));
}

TEST(SkippedStepsTest, ACheckpointCountsNoLaterStep) {
  SkippedSteps skipped(/*earlier=*/3);
  for (const int64_t step : {21, 22, 25}) skipped.Add(step);
  EXPECT_EQ(skipped.CountUpTo(20), 3);
  EXPECT_EQ(skipped.CountUpTo(21), 4);
  EXPECT_EQ(skipped.CountUpTo(24), 5);
  EXPECT_EQ(skipped.CountUpTo(30), 6);
}

}  // namespace
}  // namespace tributary
