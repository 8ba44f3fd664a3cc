// SPDX-License-Identifier: Apache-2.0
#include "common/wire/shared_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tributary {
namespace {

TEST(SharedBufferTest, IsUniqueUntilSharedAndAgainAfterwards) {
  SharedBuffer buffer(10);
  EXPECT_TRUE(buffer.Unique());
  {
    const SharedBuffer other = buffer;
    EXPECT_FALSE(buffer.Unique());
    EXPECT_EQ(other.data(), buffer.data());
  }
  EXPECT_TRUE(buffer.Unique());
}

TEST(SharedBufferTest, LiesOnACacheLine) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(SharedBuffer(3).data()) % 64, 0u);
}

TEST(SharedBufferTest, LargeOnesBeginAtTheirPlaceOfAPage) {
  for (int stagger = 0; stagger < 4; ++stagger) {
    const SharedBuffer buffer(10'000, stagger);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 4096,
              1088u * stagger);
    buffer.data()[9'999] = 1;  // lies within the memory
  }
}

TEST(SharedBufferTest, MovingKeepsTheMemory) {
  SharedBuffer buffer(4);
  float* data = buffer.data();
  SharedBuffer moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  EXPECT_TRUE(moved.Unique());
}

}  // namespace
}  // namespace tributary
