// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/row_math.h"
#include "kernels/scalar_math.h"

namespace tributary {

// The kernels of rows.cu for rows of at most kPer * 32 elements, which a warp
// keeps in registers: lane l has the elements l, l + 32, ... So every array is
// read once, and all its loads are in flight together. The bits are the same.
inline constexpr int kLongestShortRow = 1024;

template <int kPer>
struct ShortRow {
  float at[kPer];
  __device__ ShortRow(int cols, const float* x) {
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const int c = Lane() + j * kWarp;
      at[j] = c < cols ? x[c] : 0.0f;
    }
  }
};

// Calls use(j, c) for the lane's elements.
template <int kPer, typename Use>
__device__ void ForEachOfLane(int cols, Use use) {
#pragma unroll
  for (int j = 0; j < kPer; ++j) {
    const int c = Lane() + j * kWarp;
    if (c < cols) use(j, c);
  }
}

// The sum of term(j, c), as in WarpSum.
template <int kPer, typename Term>
__device__ double ShortSum(int cols, Term term) {
  double sum = 0;
  ForEachOfLane<kPer>(cols, [&](int j, int c) { sum += term(j, c); });
  for (int width = kWarp / 2; width > 0; width /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, width);
  }
  return __shfl_sync(0xffffffffu, sum, 0);
}

template <int kPer>
__global__ void __launch_bounds__(kThreads, 3)
    ShortSoftmaxKernel(int64_t rows, int cols, const float* x, float* y) {
  for (int64_t r = WarpIndex(); r < rows; r += WarpCount()) {
    ShortRow<kPer> row(cols, x + r * cols);
    float largest = __shfl_sync(0xffffffffu, row.at[0], 0);
    ForEachOfLane<kPer>(cols, [&](int j, int) {
      largest = row.at[j] > largest ? row.at[j] : largest;
    });
    for (int width = kWarp / 2; width > 0; width /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, largest, width);
      largest = other > largest ? other : largest;
    }
    const double sum = ShortSum<kPer>(cols, [&](int j, int) {
      row.at[j] = Exp(row.at[j] - largest);
      return double{row.at[j]};
    });
    const float inverse = static_cast<float>(1.0 / sum);
    float* out = y + r * cols;
    ForEachOfLane<kPer>(cols,
                        [&](int j, int c) { out[c] = row.at[j] * inverse; });
  }
}

// beta and mean are null for RMSNorm.
template <int kPer>
__global__ void __launch_bounds__(kThreads, 2)
    ShortNormKernel(int64_t rows, int cols, float epsilon, const float* x,
                    const float* gamma, const float* beta, float* y,
                    float* mean, float* rstd) {
  const double n = cols;
  for (int64_t r = WarpIndex(); r < rows; r += WarpCount()) {
    const ShortRow<kPer> row(cols, x + r * cols);
    double center = 0;
    if (mean != nullptr) {
      center =
          ShortSum<kPer>(cols, [&](int j, int) { return double{row.at[j]}; }) /
          n;
    }
    const double squares = ShortSum<kPer>(cols, [&](int j, int) {
      const double difference = double{row.at[j]} - center;
      return difference * difference;
    });
    const float m = static_cast<float>(center);
    const float s = static_cast<float>(1.0 / sqrt(squares / n + epsilon));
    if (Lane() == 0) {
      if (mean != nullptr) mean[r] = m;
      rstd[r] = s;
    }
    float* out = y + r * cols;
    ForEachOfLane<kPer>(cols, [&](int j, int c) {
      out[c] = mean == nullptr
                   ? row.at[j] * s * gamma[c]
                   : LayerNormElement(row.at[j], m, s, gamma[c], beta[c]);
    });
  }
}

template <int kPer>
__global__ void __launch_bounds__(kThreads, 2)
    ShortNormBackwardKernel(int64_t rows, int cols, const float* x,
                            const float* gamma, const float* mean,
                            const float* rstd, const float* dy, float* dx) {
  const double n = cols;
  for (int64_t r = WarpIndex(); r < rows; r += WarpCount()) {
    const ShortRow<kPer> row(cols, x + r * cols);
    const ShortRow<kPer> upstream(cols, dy + r * cols);
    const float m = mean == nullptr ? 0.0f : mean[r], s = rstd[r];
    float mean_g = 0;
    if (mean != nullptr) {
      const double sum = ShortSum<kPer>(cols, [&](int j, int c) {
        return double{upstream.at[j]} * double{gamma[c]};
      });
      mean_g = static_cast<float>(sum / n);
    }
    const double sum = ShortSum<kPer>(cols, [&](int j, int c) {
      return double{upstream.at[j]} * double{gamma[c]} *
             double{(row.at[j] - m) * s};
    });
    const float mean_gx = static_cast<float>(sum / n);
    float* out = dx + r * cols;
    ForEachOfLane<kPer>(cols, [&](int j, int c) {
      out[c] = LayerNormGradient(row.at[j], m, s, gamma[c], upstream.at[j],
                                 mean_g, mean_gx);
    });
  }
}

// Calls launch with the elements per lane as a constant.
template <typename Launch>
void WithShortRow(int64_t cols, Launch launch) {
  if (cols <= 8 * kWarp) {
    launch(std::integral_constant<int, 8>());
  } else if (cols <= 24 * kWarp) {
    launch(std::integral_constant<int, 24>());
  } else {
    launch(std::integral_constant<int, kLongestShortRow / kWarp>());
  }
}

}  // namespace tributary
