// SPDX-License-Identifier: Apache-2.0
#include "common/base/timeline_step.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(TimelineStepTest, TheFirst64AndThen32OfEveryDoubling) {
  EXPECT_FALSE(IsTimelineStep(0));
  int first = 0, doubling = 0, late = 0;
  for (int64_t step = 1; step <= 64; ++step) first += IsTimelineStep(step);
  for (int64_t step = 65; step <= 128; ++step) doubling += IsTimelineStep(step);
  for (int64_t step = (1 << 19) + 1; step <= 1 << 20; ++step) {
    late += IsTimelineStep(step);
  }
  EXPECT_EQ(first, 64);
  EXPECT_EQ(doubling, 32);
  EXPECT_EQ(late, 32);
}

}  // namespace
}  // namespace tributary
