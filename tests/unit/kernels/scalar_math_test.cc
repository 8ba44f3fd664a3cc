// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace tributary {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The worst error over evenly spaced arguments in units of the last place of
// the exact value (which subnormal numbers share with the smallest normal).
double WorstUlps(float from, float to, const std::function<float(float)>& got,
                 const std::function<double(double)>& exact) {
  constexpr int kPoints = 2000003;
  double worst = 0;
  for (int i = 0; i <= kPoints; ++i) {
    const float x = from + (to - from) * static_cast<float>(i) / kPoints;
    const double y = exact(double{x});
    const int exponent = std::max(std::ilogb(std::fabs(y) + 1e-300), -126);
    const double ulp = std::ldexp(1.0, exponent - 23);
    worst = std::max(worst, std::fabs(double{got(x)} - y) / ulp);
  }
  return worst;
}

TEST(ScalarMathTest, ExpIsWithinTwoUnitsInTheLastPlace) {
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LE(WorstUlps(-103, 88.7f, Exp, exact), 2);
  EXPECT_LE(WorstUlps(-1, 1, Exp, exact), 2);
}

TEST(ScalarMathTest, ExpReachesZeroAndInfinityAndKeepsNaN) {
  EXPECT_EQ(Exp(0), 1);
  EXPECT_EQ(Exp(-kInfinity), 0);
  EXPECT_EQ(Exp(-105), 0);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(89), kInfinity);
  EXPECT_TRUE(std::isnan(Exp(NAN)));
}

TEST(ScalarMathTest, TanhIsWithinThreeUnitsInTheLastPlace) {
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LE(WorstUlps(-10, 10, Tanh, exact), 3);
  EXPECT_LE(WorstUlps(-1e-3f, 1e-3f, Tanh, exact), 3);
}

TEST(ScalarMathTest, TanhSaturatesAndKeepsSignAndNaN) {
  EXPECT_EQ(Tanh(kInfinity), 1);
  EXPECT_EQ(Tanh(-kInfinity), -1);
  EXPECT_TRUE(std::signbit(Tanh(-0.0f)));
  EXPECT_TRUE(std::isnan(Tanh(NAN)));
}

float Phi(float x) { return NormalCdf(x, Exp(-0.5f * x * x)); }

TEST(ScalarMathTest, NormalCdfIsWithinItsErrors) {
  for (int i = -900000; i <= 900000; ++i) {
    const float x = static_cast<float>(i) * 1e-5f;
    const double wanted = 0.5 * std::erfc(-double{x} / std::sqrt(2.0));
    ASSERT_NEAR(Phi(x), wanted, 2.5e-7) << x;
    if (x < -5 || x >= 0) continue;
    ASSERT_NEAR(Phi(x) / wanted, 1, 1e-6) << x;
  }
  EXPECT_EQ(Phi(kInfinity), 1);
  EXPECT_EQ(Phi(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(Phi(NAN)));
}

TEST(ScalarMathTest, SigmoidReachesItsLimits) {
  EXPECT_EQ(Sigmoid(0), 0.5f);
  EXPECT_EQ(Sigmoid(200), 1);
  EXPECT_EQ(Sigmoid(-200), 0);
}

}  // namespace
}  // namespace tributary
