// SPDX-License-Identifier: Apache-2.0
#include "common/base/step_count.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(StepCountTest, AGatheredStepIsAnUpdate) {
  const StepCount count;
  EXPECT_EQ(count.VersionAfter(7), 7);
  EXPECT_EQ(count.StepsIn(7), 7);
}

TEST(StepCountTest, EveryContributionIsAnUpdate) {
  const StepCount count = {.updates_a_step = 3};
  EXPECT_EQ(count.VersionAfter(7), 21);
  EXPECT_EQ(count.StepsIn(21), 7);
  EXPECT_EQ(count.StepsIn(23), 7) << "one worker has not contributed yet";
}

TEST(StepCountTest, ARoundOfLocalSgdIsAnUpdate) {
  const StepCount count = {.steps_an_update = 8};
  EXPECT_EQ(count.VersionAfter(16), 2);
  EXPECT_EQ(count.VersionAfter(17), 3) << "the last round may be shorter";
  EXPECT_EQ(count.StepsIn(3), 24);
}

}  // namespace
}  // namespace tributary
