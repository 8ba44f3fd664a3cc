// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/direct_convolution.h"

#include <gtest/gtest.h>

#include <limits>
#include <ostream>
#include <vector>

namespace tributary {

void PrintTo(const Convolution& c, std::ostream* out) {
  const Window& w = c.window;
  *out << c.in_channels << " to " << c.out_channels << " planes of " << w.height
       << " x " << w.width << ", filters " << w.kernel_height << " x "
       << w.kernel_width << ", padding " << w.padding_height << ", "
       << w.padding_width << ", dilation " << w.dilation_height << ", "
       << w.dilation_width;
}

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Integers from -3 to 3, so that every sum is exact in any order.
std::vector<float> Integers(int64_t n, uint32_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(seed >> 16 & 0xffff) / 65536.0f);
    values.back() = static_cast<float>(static_cast<int>(values.back() * 7) - 3);
  }
  return values;
}

struct Expected {
  std::vector<float> y, dx, d_weight;
};

// The definition, one product after the other.
Expected ByDefinition(const Convolution& c, int64_t rows,
                      const std::vector<float>& x,
                      const std::vector<float>& weight,
                      const std::vector<float>& bias,
                      const std::vector<float>& dy) {
  const Window& w = c.window;
  Expected e{std::vector<float>(rows * c.out_size()),
             std::vector<float>(x.size()), std::vector<float>(weight.size())};
  const auto visit = [&](int64_t n, int64_t o, int64_t i, int64_t out,
                         int64_t kh, int64_t kw) {
    const int64_t r = out / w.out_width() - w.padding_height;
    const int64_t q = out % w.out_width() - w.padding_width;
    const int64_t row = r + kh * w.dilation_height;
    const int64_t column = q + kw * w.dilation_width;
    if (row < 0 || row >= w.height || column < 0 || column >= w.width) return;
    const int64_t at =
        n * c.in_size() + (i * w.height + row) * w.width + column;
    const int64_t tap =
        ((o * c.in_channels + i) * w.kernel_height + kh) * w.kernel_width + kw;
    const int64_t to = n * c.out_size() + o * w.out_pixels() + out;
    e.y[to] += weight[tap] * x[at];
    e.dx[at] += weight[tap] * dy[to];
    e.d_weight[tap] += dy[to] * x[at];
  };
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t o = 0; o < c.out_channels; ++o) {
      for (int64_t out = 0; out < w.out_pixels(); ++out) {
        e.y[n * c.out_size() + o * w.out_pixels() + out] = bias[o];
        for (int64_t i = 0; i < c.in_channels; ++i) {
          for (int64_t k = 0; k < w.kernel_pixels(); ++k) {
            visit(n, o, i, out, k / w.kernel_width, k % w.kernel_width);
          }
        }
      }
    }
  }
  return e;
}

class DirectConvolutionTest : public ::testing::TestWithParam<Convolution> {};

void ExpectTheDefinition(const Convolution& c, int64_t rows,
                         const Correlations& correlations) {
  ASSERT_TRUE(DirectConvolution::Takes(c));
  const auto x = Integers(rows * c.in_size(), 1);
  const auto weight = Integers(c.out_channels * c.filter_size(), 2);
  const auto bias = Integers(c.out_channels, 3);
  const auto dy = Integers(rows * c.out_size(), 4);
  const Expected wanted = ByDefinition(c, rows, x, weight, bias, dy);

  const DirectConvolution direct(c, rows, correlations);
  // The former contents of the scratch must not matter; the last floats show
  // that nothing is written behind it.
  std::vector<float> scratch(direct.scratch_size() + 2, kNan);
  scratch[direct.scratch_size()] = 17;
  std::vector<float> y(wanted.y.size(), kNan), dx(wanted.dx.size(), kNan);
  std::vector<float> d_weight(weight.size(), kNan);
  direct.Forward(x.data(), weight.data(), bias.data(), y.data(),
                 scratch.data());
  EXPECT_EQ(y, wanted.y);
  std::fill_n(scratch.begin(), direct.scratch_size(), kNan);
  direct.Backward(x.data(), weight.data(), dy.data(), dx.data(), 0,
                  d_weight.data(), scratch.data());
  EXPECT_EQ(dx, wanted.dx);
  EXPECT_EQ(d_weight, wanted.d_weight);
  direct.Backward(x.data(), weight.data(), dy.data(), nullptr, 1,
                  d_weight.data(), scratch.data());
  for (float& element : d_weight) element /= 2;
  EXPECT_EQ(d_weight, wanted.d_weight);
  EXPECT_EQ(scratch[direct.scratch_size()], 17);
}

TEST_P(DirectConvolutionTest, GivesTheDefinitionsSumsOnAnyProcessor) {
  for (const int64_t rows : {1, 9}) {
    ExpectTheDefinition(GetParam(), rows, PlainCorrelations());
  }
}

TEST_P(DirectConvolutionTest, GivesTheDefinitionsSumsOnThisProcessor) {
  for (const int64_t rows : {1, 9}) {
    ExpectTheDefinition(GetParam(), rows, BestCorrelations());
  }
}

// Height, width, kernel, stride, padding, dilation. The first two are those of
// the CNN preset; then filters of one pixel, which leave no zeros between the
// rows, wide ones, uneven ones, padding less than full, dilation, planes
// smaller than a vector.
INSTANTIATE_TEST_SUITE_P(
    Convolutions, DirectConvolutionTest,
    ::testing::Values(Convolution{1, 16, 1, {28, 28, 3, 3, 1, 1, 1, 1, 1, 1}},
                      Convolution{16, 32, 1, {14, 14, 3, 3, 1, 1, 1, 1, 1, 1}},
                      Convolution{5, 6, 1, {7, 7, 1, 1, 1, 1, 0, 0, 1, 1}},
                      Convolution{3, 7, 1, {11, 13, 5, 5, 1, 1, 2, 2, 1, 1}},
                      Convolution{4, 3, 1, {6, 19, 3, 2, 1, 1, 2, 0, 1, 1}},
                      Convolution{2, 5, 1, {9, 12, 3, 3, 1, 1, 1, 2, 2, 2}},
                      Convolution{3, 4, 1, {5, 5, 2, 2, 1, 1, 0, 0, 1, 1}}));

TEST(DirectConvolutionTakesTest, LeavesTheOthersToColumns) {
  const Convolution plain{2, 4, 1, {12, 12, 3, 3, 1, 1, 1, 1, 1, 1}};
  EXPECT_TRUE(DirectConvolution::Takes(plain));
  Convolution c = plain;
  c.window.stride_width = 2;
  EXPECT_FALSE(DirectConvolution::Takes(c));
  c = plain;
  c.groups = 2;
  EXPECT_FALSE(DirectConvolution::Takes(c));
  c = plain;
  c.window.padding_height = 3;  // rows that see no input
  EXPECT_FALSE(DirectConvolution::Takes(c));
  c = plain;
  c.window.width = 3;  // more zeros than inputs
  EXPECT_FALSE(DirectConvolution::Takes(c));
  c = plain;
  c.window.height = c.window.width = 300;  // 2 MB a sample
  EXPECT_FALSE(DirectConvolution::Takes(c));
}

}  // namespace
}  // namespace tributary
