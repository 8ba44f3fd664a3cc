// SPDX-License-Identifier: Apache-2.0
#include "common/evaluation/variation.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace tributary::testing {
namespace {

Variation Of(const std::vector<double>& numbers) {
  Variation variation;
  for (double number : numbers) variation.Add(number);
  return variation;
}

// Mean 3, deviations -2, -1, 0, 3: 4 + 1 + 0 + 9.
TEST(VariationTest, PartsAddUpToTheWhole) {
  for (size_t cut = 0; cut <= 4; ++cut) {
    const std::vector<double> all = {1, 2, 3, 6};
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(cut);
    Variation sum = Of({all.begin(), at});
    sum.Add(Of({at, all.end()}));
    EXPECT_EQ(sum.count, 4u);
    EXPECT_DOUBLE_EQ(sum.mean, 3) << cut;
    EXPECT_DOUBLE_EQ(sum.squares, 14) << cut;
  }
}

TEST(VariationTest, EqualNumbersHaveNoneExactly) {
  for (const double number : {0.7, static_cast<double>(0.7f), 1e-30, -3e38}) {
    Variation sum;
    for (int part = 0; part < 3; ++part) {
      sum.Add(Of(std::vector<double>(6667, number)));
    }
    EXPECT_EQ(sum.count, 20001u);
    EXPECT_EQ(sum.mean, number);
    EXPECT_EQ(sum.squares, 0);
  }
}

// 100 times -1, 0, 1, 2 around a mean of half: 100 (2.25 + .25 + .25 + 2.25).
TEST(VariationTest, ALargeMeanKeepsTheDigits) {
  for (const double base : {0.0, 8e6, 1.6e9, -1e12}) {
    Variation sum;
    for (int part = 0; part < 4; ++part) {
      Variation rank;
      for (int i = part; i < 400; i += 4) rank.Add(base + i * 7919 % 4 - 1);
      sum.Add(rank);
    }
    EXPECT_NEAR(sum.squares, 500, 500 * 1e-3) << base;
    EXPECT_NEAR(sum.mean - base, 0.5, 1e-3) << base;
  }
}

TEST(VariationTest, NothingChangesNothing) {
  Variation sum = Of({5, 7});
  sum.Add(Variation());
  EXPECT_EQ(sum.count, 2u);
  EXPECT_EQ(sum.squares, 2);
}

}  // namespace
}  // namespace tributary::testing
