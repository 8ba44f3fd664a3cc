// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/row_math.h"
#include "kernels/scalar_math.h"

namespace tributary {
namespace {

TRIBUTARY_CLONES void SoftmaxRow(int64_t cols, const float* x, float* y) {
  const float largest = LaneMax(cols, x);
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < cols; ++c) y[c] = Exp(x[c] - largest);
  const double sum = LaneSum(cols, [y](int64_t c) { return double{y[c]}; });
  const float inverse = static_cast<float>(1.0 / sum);
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < cols; ++c) y[c] *= inverse;
}

TRIBUTARY_CLONES void SoftmaxRowBackward(int64_t cols, const float* y,
                                         const float* dy, float* dx) {
  const float dot = static_cast<float>(LaneSum(
      cols, [y, dy](int64_t c) { return double{y[c]} * double{dy[c]}; }));
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < cols; ++c) dx[c] = SoftmaxGradient(y[c], dy[c], dot);
}

// The statistics of one row; if `mean` is null, computed as for mean 0.
TRIBUTARY_INLINE void RowStatistics(int64_t cols, float epsilon, const float* x,
                                    float* mean, float* rstd) {
  const double n = static_cast<double>(cols);
  double center = 0;
  if (mean != nullptr) {
    center = LaneSum(cols, [x](int64_t c) { return double{x[c]}; }) / n;
  }
  const double squares = LaneSum(cols, [x, center](int64_t c) {
    const double difference = double{x[c]} - center;
    return difference * difference;
  });
  if (mean != nullptr) *mean = static_cast<float>(center);
  *rstd = static_cast<float>(1.0 / std::sqrt(squares / n + epsilon));
}

TRIBUTARY_CLONES void LayerNormRow(int64_t cols, float epsilon, const float* x,
                                   const float* gamma, const float* beta,
                                   float* y, float* mean, float* rstd) {
  RowStatistics(cols, epsilon, x, mean, rstd);
  const float s = *rstd;
  if (mean == nullptr) {
    TRIBUTARY_IVDEP
    for (int64_t c = 0; c < cols; ++c) y[c] = x[c] * s * gamma[c];
    return;
  }
  const float m = *mean;
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < cols; ++c) {
    y[c] = LayerNormElement(x[c], m, s, gamma[c], beta[c]);
  }
}

// RMSNorm has the mean 0, no dbeta, and no gradient through the mean.
TRIBUTARY_CLONES void LayerNormRowBackward(int64_t cols, const float* x,
                                           const float* gamma, float mean,
                                           float rstd, const float* dy,
                                           float* dx, float* dgamma,
                                           float* dbeta) {
  const double n = static_cast<double>(cols);
  float mean_g = 0;
  if (dbeta != nullptr) {
    const double sum = LaneSum(
        cols, [=](int64_t c) { return double{dy[c]} * double{gamma[c]}; });
    mean_g = static_cast<float>(sum / n);
  }
  const float mean_gx =
      static_cast<float>(LaneSum(cols,
                                 [=](int64_t c) {
                                   return double{dy[c]} * double{gamma[c]} *
                                          double{(x[c] - mean) * rstd};
                                 }) /
                         n);
  if (dbeta != nullptr) {
    TRIBUTARY_IVDEP
    for (int64_t c = 0; c < cols; ++c) dbeta[c] += dy[c];
  }
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < cols; ++c) {
    const float upstream = dy[c];  // dx may be dy
    dgamma[c] += upstream * ((x[c] - mean) * rstd);
    dx[c] = LayerNormGradient(x[c], mean, rstd, gamma[c], upstream, mean_g,
                              mean_gx);
  }
}

// One group of one sample: x, y: [channels, pixels], gamma, beta: [channels].
TRIBUTARY_CLONES void NormalizeGroup(int64_t channels, int64_t pixels,
                                     float epsilon, const float* x,
                                     const float* gamma, const float* beta,
                                     float* y, float* mean, float* rstd) {
  RowStatistics(channels * pixels, epsilon, x, mean, rstd);
  const float m = *mean, s = *rstd;
  for (int64_t c = 0; c < channels; ++c) {
    const float g = gamma[c], b = beta[c];
    TRIBUTARY_IVDEP
    for (int64_t i = c * pixels; i < (c + 1) * pixels; ++i) {
      y[i] = LayerNormElement(x[i], m, s, g, b);
    }
  }
}

TRIBUTARY_CLONES void DifferentiateGroup(int64_t channels, int64_t pixels,
                                         const float* x, const float* gamma,
                                         float mean, float rstd,
                                         const float* dy, float* dx,
                                         float* dgamma, float* dbeta) {
  double sum_g = 0, sum_gx = 0;
  for (int64_t c = 0; c < channels; ++c) {
    const float* in = x + c * pixels;
    const float* upstream = dy + c * pixels;
    const double of_dy =
        LaneSum(pixels, [=](int64_t i) { return double{upstream[i]}; });
    const double of_xhat = LaneSum(pixels, [=](int64_t i) {
      return double{upstream[i]} * double{(in[i] - mean) * rstd};
    });
    dbeta[c] += static_cast<float>(of_dy);
    dgamma[c] += static_cast<float>(of_xhat);
    sum_g += double{gamma[c]} * of_dy;
    sum_gx += double{gamma[c]} * of_xhat;
  }
  if (dx == nullptr) return;
  const double n = static_cast<double>(channels * pixels);
  const float mean_g = static_cast<float>(sum_g / n);
  const float mean_gx = static_cast<float>(sum_gx / n);
  for (int64_t c = 0; c < channels; ++c) {
    const float g = gamma[c];
    TRIBUTARY_IVDEP
    for (int64_t i = c * pixels; i < (c + 1) * pixels; ++i) {
      dx[i] = LayerNormGradient(x[i], mean, rstd, g, dy[i], mean_g, mean_gx);
    }
  }
}

}  // namespace

void CpuOps::Softmax(int64_t rows, int64_t cols, const float* x, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    SoftmaxRow(cols, x + r * cols, y + r * cols);
  }
}

void CpuOps::SoftmaxBackward(int64_t rows, int64_t cols, const float* y,
                             const float* dy, float* dx) {
  for (int64_t r = 0; r < rows; ++r) {
    SoftmaxRowBackward(cols, y + r * cols, dy + r * cols, dx + r * cols);
  }
}

void CpuOps::LayerNorm(int64_t rows, int64_t cols, float epsilon,
                       const float* x, const float* gamma, const float* beta,
                       float* y, float* mean, float* rstd) {
  for (int64_t r = 0; r < rows; ++r) {
    LayerNormRow(cols, epsilon, x + r * cols, gamma, beta, y + r * cols,
                 mean == nullptr ? nullptr : mean + r, rstd + r);
  }
}

void CpuOps::LayerNormBackward(int64_t rows, int64_t cols, const float* x,
                               const float* gamma, const float* mean,
                               const float* rstd, const float* dy, float* dx,
                               float* dgamma, float* dbeta) {
  for (int64_t r = 0; r < rows; ++r) {
    LayerNormRowBackward(cols, x + r * cols, gamma,
                         mean == nullptr ? 0 : mean[r], rstd[r], dy + r * cols,
                         dx + r * cols, dgamma, dbeta);
  }
}

void CpuOps::GroupNorm(const BatchNormShape& s, int64_t groups, float epsilon,
                       const float* x, const float* gamma, const float* beta,
                       float* y, float* mean, float* rstd) {
  const int64_t channels = s.channels / groups, size = channels * s.pixels;
  for (int64_t i = 0; i < s.rows * groups; ++i) {
    const int64_t first = i % groups * channels;
    NormalizeGroup(channels, s.pixels, epsilon, x + i * size, gamma + first,
                   beta + first, y + i * size, mean + i, rstd + i);
  }
}

void CpuOps::GroupNormBackward(const BatchNormShape& s, int64_t groups,
                               const float* x, const float* gamma,
                               const float* mean, const float* rstd,
                               const float* dy, float* dx, float* dgamma,
                               float* dbeta) {
  const int64_t channels = s.channels / groups, size = channels * s.pixels;
  for (int64_t i = 0; i < s.rows * groups; ++i) {
    const int64_t first = i % groups * channels;
    DifferentiateGroup(channels, s.pixels, x + i * size, gamma + first, mean[i],
                       rstd[i], dy + i * size,
                       dx == nullptr ? nullptr : dx + i * size, dgamma + first,
                       dbeta + first);
  }
}

}  // namespace tributary
