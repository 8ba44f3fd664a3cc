// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/dropout_math.h"
#include "kernels/ops.h"

namespace tributary {
namespace {

std::vector<float> Mask(int64_t rows, int64_t cols, float p,
                        const DropoutKey& key) {
  std::vector<float> y(static_cast<size_t>(rows * cols), 1.0f);
  CreateCpuOps()->Dropout(rows, cols, p, key, y.data(), y.data());
  return y;
}

// The known answers that Salmon et al. publish with Philox-4x32-10.
TEST(PhiloxTest, GivesThePublishedNumbers) {
  const Philox4 zeros = Philox(0, 0, 0, 0, 0, 0);
  EXPECT_EQ(zeros.word[0], 0x6627e8d5u);
  EXPECT_EQ(zeros.word[1], 0xe169c58du);
  EXPECT_EQ(zeros.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zeros.word[3], 0x9b00dbd8u);
  const uint32_t f = 0xffffffffu;
  const Philox4 ones = Philox(f, f, f, f, f, f);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[1], 0x41c83b0eu);
  EXPECT_EQ(ones.word[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
}

TEST(DropoutTest, KeepsTheWantedShareAndScalesIt) {
  const std::vector<float> y = Mask(1000, 1001, 0.25f, DropoutKey());
  const double kept = static_cast<double>(
      std::count_if(y.begin(), y.end(), [](float v) { return v != 0; }));
  // Six standard deviations of a million draws: 6 sqrt(.25 .75 / 1e6) = .0026.
  EXPECT_NEAR(kept / static_cast<double>(y.size()), 0.75, 0.0026);
  const float scale = 1.0f / 0.75f;
  for (float v : y) ASSERT_TRUE(v == 0 || v == scale) << v;
}

TEST(DropoutTest, ProbabilityZeroKeepsAllAndOneKeepsNone) {
  const std::vector<float> all = Mask(5, 7, 0.0f, DropoutKey());
  EXPECT_EQ(all, std::vector<float>(35, 1.0f));
  const std::vector<float> none = Mask(5, 7, 1.0f, DropoutKey());
  EXPECT_EQ(none, std::vector<float>(35, 0.0f));
}

// Rank r of two holds rows r, r + 2, ... of the global batch.
TEST(DropoutTest, ShardsDrawTheRowsOfTheGlobalBatch) {
  const int64_t cols = 13;
  DropoutKey key{/*seed=*/5, /*step=*/3, /*layer=*/1};
  const std::vector<float> whole = Mask(8, cols, 0.5f, key);
  key.row_stride = 2;
  for (int64_t rank = 0; rank < 2; ++rank) {
    key.first_row = rank;
    const std::vector<float> shard = Mask(4, cols, 0.5f, key);
    for (int64_t i = 0; i < 4 * cols; ++i) {
      const int64_t row = rank + 2 * (i / cols);
      ASSERT_EQ(shard[i], whole[row * cols + i % cols]) << rank << " " << i;
    }
  }
}

TEST(DropoutTest, SeedStepAndLayerEachGiveAnotherMask) {
  const DropoutKey key{/*seed=*/5, /*step=*/3, /*layer=*/1};
  const std::vector<float> mask = Mask(4, 64, 0.5f, key);
  DropoutKey other = key;
  other.seed = 5 + (uint64_t{1} << 32);
  EXPECT_NE(Mask(4, 64, 0.5f, other), mask);
  other = key;
  other.step = 4;
  EXPECT_NE(Mask(4, 64, 0.5f, other), mask);
  other = key;
  other.layer = 2;
  EXPECT_NE(Mask(4, 64, 0.5f, other), mask);
  EXPECT_EQ(Mask(4, 64, 0.5f, key), mask);
}

// A rank with columns 3 to 9 of every 20 of a row draws what a rank with all of
// them draws for these.
TEST(DropoutTest, CutColumnsDrawAsInTheWholeRow) {
  DropoutKey key{/*seed=*/5, /*step=*/3, /*layer=*/1};
  const std::vector<float> whole = Mask(3, 80, 0.5f, key);
  for (const int64_t first : {0, 3, 4, 13}) {
    key.first_column = first;
    key.run = 7;
    key.run_stride = 20;
    const std::vector<float> part = Mask(3, 28, 0.5f, key);
    for (int64_t i = 0; i < 3 * 28; ++i) {
      const int64_t c = i % 28;
      ASSERT_EQ(part[i], whole[i / 28 * 80 + first + c / 7 * 20 + c % 7])
          << first << " " << i;
    }
  }
}

}  // namespace
}  // namespace tributary
