// SPDX-License-Identifier: Apache-2.0
#include "common/host/clock_id.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(ClockIdTest, DiffersWithTheBootAndWithTheTimeNamespace) {
  EXPECT_EQ(ClockIdOf("", "monotonic 0 0"), 0u);
  // FNV-1a of "a", from its authors' test vectors.
  EXPECT_EQ(ClockIdOf("a", ""), 0xaf63dc4c8601ec8cu);
  EXPECT_NE(ClockIdOf("a", ""), ClockIdOf("b", ""));
  EXPECT_NE(ClockIdOf("a", "monotonic 0 0"), ClockIdOf("a", "monotonic 5 0"));
}

TEST(ClockIdTest, IsTheSameWheneverThisProcessAsks) {
  EXPECT_EQ(MonotonicClockId(), MonotonicClockId());
}

}  // namespace
}  // namespace tributary
