// SPDX-License-Identifier: Apache-2.0
// Operands of products rounded to bfloat16: checks the rounding, and that
// nothing else happens.
#include "kernels/bfloat16_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/device.h"
#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Bfloat16Test, RoundsToTheNearestAndTiesToTheEven) {
  const float step = 0x1p-7f;  // from 1 to the next
  EXPECT_EQ(RoundToBfloat16(1), 1);
  EXPECT_EQ(RoundToBfloat16(1 + step / 2), 1) << "1 is even";
  EXPECT_EQ(RoundToBfloat16(1 + step * 3 / 2), 1 + 2 * step);
  EXPECT_EQ(RoundToBfloat16(std::nextafter(1 + step / 2, 2.0f)), 1 + step);
  EXPECT_EQ(RoundToBfloat16(std::nextafter(1 + step * 3 / 2, 0.0f)), 1 + step);
  EXPECT_EQ(RoundToBfloat16(-1 - step * 3 / 2), -1 - 2 * step);
  EXPECT_EQ(RoundToBfloat16(0x1.ffp0f), 2) << "into the next power of two";
}

TEST(Bfloat16Test, ZeroKeepsItsSignAndSubnormalsRoundLikeOthers) {
  EXPECT_TRUE(std::signbit(RoundToBfloat16(-0.0f)));
  EXPECT_EQ(RoundToBfloat16(0x1p-133f), 0x1p-133f);  // the smallest
  EXPECT_EQ(RoundToBfloat16(0x1p-134f), 0) << "a tie with the even 0";
  EXPECT_EQ(RoundToBfloat16(0x1.8p-133f), 0x1p-132f) << "a tie with the even 2";
}

TEST(Bfloat16Test, WhatIsPastTheLargestIsInfinite) {
  EXPECT_EQ(RoundToBfloat16(0x1.fep127f), 0x1.fep127f);
  EXPECT_EQ(RoundToBfloat16(std::nextafter(0x1.ffp127f, 0.0f)), 0x1.fep127f);
  EXPECT_EQ(RoundToBfloat16(0x1.ffp127f), kInfinity) << "a tie";
  EXPECT_EQ(RoundToBfloat16(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(RoundToBfloat16(-std::numeric_limits<float>::max()), -kInfinity);
  EXPECT_EQ(RoundToBfloat16(kInfinity), kInfinity);
}

TEST(Bfloat16Test, EveryNanStaysOne) {
  for (uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu,
                        0x7f80ffffu, 0x7fc00000u}) {
    EXPECT_TRUE(std::isnan(RoundToBfloat16(BitsFloat(bits)))) << bits;
  }
}

// Checks each bfloat16 with what lies between it and the next: the result is
// the nearer of the two, or the even one where both are equally far.
TEST(Bfloat16Test, NoNumberHasANearerNeighbour) {
  for (uint32_t upper = 0; upper < 0x7f7fu; ++upper) {
    const double below = BitsFloat(upper << 16);
    const double above = BitsFloat((upper + 1) << 16);
    for (uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float x = BitsFloat((upper << 16) | lower);
      const double to_below = double{x} - below, to_above = above - double{x};
      const bool up =
          to_above < to_below || (to_above == to_below && upper % 2 == 1);
      ASSERT_EQ(double{RoundToBfloat16(x)}, up ? above : below) << x;
      ASSERT_EQ(RoundToBfloat16(-x), -RoundToBfloat16(x));
    }
  }
}

std::vector<float> Rounded(std::vector<float> numbers) {
  for (float& x : numbers) x = RoundToBfloat16(x);
  return numbers;
}

std::vector<double> Product(Ops& ops, bool transpose_a, bool transpose_b,
                            const std::vector<float>& a,
                            const std::vector<float>& b) {
  Floats of_a(ops, a), of_b(ops, b), c(ops, Numbers(17 * 9, 3));
  ops.Gemm(transpose_a, transpose_b, 17, 9, 33, 0.3f, of_a.data(), of_b.data(),
           1, c.data());
  return c.Download();
}

// So the sums, the scale and the output that they are added to are float32, in
// float32's order.
TEST(Bfloat16Test, AProductIsFloat32sOfRoundedOperands) {
  const auto exact = CreateCpuOps();
  const auto rounding = CreateCpuOps(ProductPrecision::kBfloat16);
  const std::vector<float> a = Numbers(17 * 33, 1), b = Numbers(33 * 9, 2);
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      EXPECT_EQ(
          Product(*rounding, transpose_a, transpose_b, a, b),
          Product(*exact, transpose_a, transpose_b, Rounded(a), Rounded(b)));
    }
  }
  EXPECT_NE(Product(*rounding, false, false, a, b),
            Product(*exact, false, false, a, b));
}

// A convolution multiplies the filters with the pixels and, in its backward
// pass, the upstream gradient with both.
Outputs Convolved(Ops& ops, const std::vector<float>& x,
                  const std::vector<float>& weight,
                  const std::vector<float>& dy) {
  const Convolution c = {4, 6, 2, {7, 6, 3, 3, 2, 1, 1, 1, 1, 1}};
  const int64_t rows = 3;
  Floats of_x(ops, x), of_weight(ops, weight), of_dy(ops, dy);
  Floats bias(ops, Numbers(6, 4));
  Floats y(ops, Numbers(rows * c.out_size(), 5));
  Floats dx(ops, Numbers(rows * c.in_size(), 6));
  Floats dw(ops, Numbers(6 * c.filter_size(), 7));
  Floats scratch(ops, std::vector<float>(ops.ConvolutionScratch(c, rows)));
  ops.Convolve(c, rows, of_x.data(), of_weight.data(), bias.data(), y.data(),
               scratch.data());
  ops.ConvolveBackward(c, rows, of_x.data(), of_weight.data(), of_dy.data(),
                       dx.data(), 1, dw.data(), nullptr, scratch.data());
  return {y.Download(), dx.Download(), dw.Download()};
}

TEST(Bfloat16Test, SoIsAConvolution) {
  const auto exact = CreateCpuOps();
  const auto rounding = CreateCpuOps(ProductPrecision::kBfloat16);
  const std::vector<float> x = Numbers(3 * 4 * 7 * 6, 1);
  const std::vector<float> weight = Numbers(6 * 2 * 9, 2);
  const std::vector<float> dy = Numbers(3 * 6 * 4 * 6, 3);
  EXPECT_EQ(Convolved(*rounding, x, weight, dy),
            Convolved(*exact, Rounded(x), Rounded(weight), Rounded(dy)));
}

}  // namespace
}  // namespace tributary::testing
