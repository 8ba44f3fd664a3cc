// SPDX-License-Identifier: Apache-2.0
#include "common/evaluation/area_under_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tributary {
namespace {

double Area(const std::vector<float>& scores, std::string targets) {
  for (char& target : targets) target = static_cast<char>(target - '0');
  return AreaUnderCurve(scores, targets);
}

TEST(AreaUnderCurveTest, CountsThePairsInOrder) {
  EXPECT_EQ(Area({.1f, .4f, .35f, .8f}, "0011"), 0.75);  // scikit-learn's page
  EXPECT_EQ(Area({3, 2, 1}, "100"), 1);
  EXPECT_EQ(Area({3, 2, 1}, "001"), 0);
}

// Positive 2 meets negatives 2 (half), 1 (one); positive 1 meets 2 (none), 1
// (half): 2 of 4.
TEST(AreaUnderCurveTest, EqualScoresCountHalf) {
  EXPECT_EQ(Area({2, 2, 1, 1}, "1010"), 0.5);
  EXPECT_EQ(Area({5, 5, 5, 5, 5}, "10010"), 0.5);
  EXPECT_EQ(Area({2, 2, 1}, "100"), 0.75);
  EXPECT_EQ(Area({0.0f, -0.0f}, "10"), 0.5);
}

TEST(AreaUnderCurveTest, IsExactAgainstEveryPair) {
  std::vector<float> scores;
  std::string targets;
  uint32_t state = 7;
  for (int i = 0; i < 501; ++i) {
    state = state * 1664525u + 1013904223u;
    scores.push_back(static_cast<float>(state >> 27));  // 32 values: many ties
    targets.push_back((state >> 13) % 3 == 0 ? 1 : 0);
  }
  double wins = 0, pairs = 0;
  for (size_t p = 0; p < scores.size(); ++p) {
    for (size_t n = 0; n < scores.size(); ++n) {
      if (targets[p] != 1 || targets[n] != 0) continue;
      pairs += 1;
      wins += scores[p] > scores[n] ? 1 : scores[p] == scores[n] ? 0.5 : 0;
    }
  }
  EXPECT_EQ(AreaUnderCurve(scores, targets), wins / pairs);
}

TEST(AreaUnderCurveTest, IsUndefinedWithoutBothClassesOrWithNan) {
  EXPECT_TRUE(std::isnan(Area({}, "")));
  EXPECT_TRUE(std::isnan(Area({1, 2}, "11")));
  EXPECT_TRUE(std::isnan(Area({1, 2}, "00")));
  EXPECT_TRUE(
      std::isnan(Area({1, std::numeric_limits<float>::quiet_NaN()}, "10")));
}

TEST(AreaUnderCurveTest, InfiniteScoresAreTheLast) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Area({infinity, 1, -infinity}, "100"), 1);
}

}  // namespace
}  // namespace tributary
