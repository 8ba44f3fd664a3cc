// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/short_rows.cuh"
#include "kernels/row_math.h"
#include "kernels/scalar_math.h"

namespace tributary {
namespace {

// In the LayerNorm kernels, mean, beta and dbeta are null for RMSNorm.
__device__ float MeanOf(const float* mean, int64_t row) {
  return mean == nullptr ? 0.0f : mean[row];
}

// The kernels below take one warp per row. A lane reads back only what it wrote
// itself, so x may be y and dy may be dx.

__global__ void SoftmaxKernel(int64_t rows, int64_t cols, const float* x,
                              float* y) {
  for (int64_t r = WarpIndex(); r < rows; r += WarpCount()) {
    const float* in = x + r * cols;
    float* out = y + r * cols;
    const float largest = WarpMax(cols, in);
    __syncwarp();  // all lanes have read in[0]
    const double sum = WarpSum(cols, [=](int64_t c) {
      out[c] = Exp(in[c] - largest);
      return static_cast<double>(out[c]);
    });
    const float inverse = static_cast<float>(1.0 / sum);
    for (int64_t c = Lane(); c < cols; c += kWarp) out[c] *= inverse;
  }
}

__global__ void SoftmaxBackwardKernel(int64_t rows, int64_t cols,
                                      const float* y, const float* dy,
                                      float* dx) {
  for (int64_t r = WarpIndex(); r < rows; r += WarpCount()) {
    const float* probability = y + r * cols;
    const float* upstream = dy + r * cols;
    const float dot = static_cast<float>(WarpSum(cols, [=](int64_t c) {
      return double{probability[c]} * double{upstream[c]};
    }));
    for (int64_t c = Lane(); c < cols; c += kWarp) {
      dx[r * cols + c] = SoftmaxGradient(probability[c], upstream[c], dot);
    }
  }
}

// The statistics of the row at `in`; if `mean` is null, as for mean 0. All
// lanes get both values.
struct Statistics {
  float center, scale;
};
__device__ Statistics RowStatistics(int64_t cols, float epsilon,
                                    const float* in, float* mean, float* rstd) {
  const double n = static_cast<double>(cols);
  double center = 0;
  if (mean != nullptr) {
    center = WarpSum(cols, [=](int64_t c) { return double{in[c]}; }) / n;
  }
  const double squares = WarpSum(cols, [=](int64_t c) {
    const double difference = double{in[c]} - center;
    return difference * difference;
  });
  const Statistics of = {static_cast<float>(center),
                         static_cast<float>(1.0 / sqrt(squares / n + epsilon))};
  if (Lane() == 0) {
    if (mean != nullptr) *mean = of.center;
    *rstd = of.scale;
  }
  return of;
}

__global__ void LayerNormKernel(int64_t rows, int64_t cols, float epsilon,
                                const float* x, const float* gamma,
                                const float* beta, float* y, float* mean,
                                float* rstd) {
  for (int64_t r = WarpIndex(); r < rows; r += WarpCount()) {
    const float* in = x + r * cols;
    const auto [m, s] = RowStatistics(
        cols, epsilon, in, mean == nullptr ? nullptr : mean + r, rstd + r);
    for (int64_t c = Lane(); c < cols; c += kWarp) {
      y[r * cols + c] = mean == nullptr
                            ? in[c] * s * gamma[c]
                            : LayerNormElement(in[c], m, s, gamma[c], beta[c]);
    }
  }
}

__global__ void LayerNormBackwardKernel(int64_t rows, int64_t cols,
                                        const float* x, const float* gamma,
                                        const float* mean, const float* rstd,
                                        const float* dy, float* dx) {
  for (int64_t r = WarpIndex(); r < rows; r += WarpCount()) {
    const float* in = x + r * cols;
    const float* upstream = dy + r * cols;
    const float m = MeanOf(mean, r), s = rstd[r];
    const double n = static_cast<double>(cols);
    const SumPair sums = WarpSumPair(cols, [=](int64_t c) {
      const double g = double{upstream[c]} * double{gamma[c]};
      return SumPair{g, g * double{(in[c] - m) * s}};
    });
    const float mean_g =
        mean == nullptr ? 0.0f : static_cast<float>(sums.first / n);
    const float mean_gx = static_cast<float>(sums.second / n);
    for (int64_t c = Lane(); c < cols; c += kWarp) {
      dx[r * cols + c] = LayerNormGradient(in[c], m, s, gamma[c], upstream[c],
                                           mean_g, mean_gx);
    }
  }
}

// One warp per group of one sample. All channels of a group follow each other.

__global__ void GroupNormKernel(BatchNormShape shape, int64_t groups,
                                float epsilon, const float* x,
                                const float* gamma, const float* beta, float* y,
                                float* mean, float* rstd) {
  const int64_t channels = shape.channels / groups;
  const int64_t size = channels * shape.pixels;
  for (int64_t g = WarpIndex(); g < shape.rows * groups; g += WarpCount()) {
    const float* in = x + g * size;
    const auto [m, s] = RowStatistics(size, epsilon, in, mean + g, rstd + g);
    for (int64_t i = Lane(); i < size; i += kWarp) {
      const int64_t c = g % groups * channels + i / shape.pixels;
      y[g * size + i] = LayerNormElement(in[i], m, s, gamma[c], beta[c]);
    }
  }
}

__global__ void GroupNormBackwardKernel(BatchNormShape shape, int64_t groups,
                                        const float* x, const float* gamma,
                                        const float* mean, const float* rstd,
                                        const float* dy, float* dx) {
  const int64_t channels = shape.channels / groups, pixels = shape.pixels;
  const int64_t size = channels * pixels;
  for (int64_t g = WarpIndex(); g < shape.rows * groups; g += WarpCount()) {
    const float* weight = gamma + g % groups * channels;
    const float m = mean[g], s = rstd[g];
    double sum_g = 0, sum_gx = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const float* in = x + g * size + c * pixels;
      const float* upstream = dy + g * size + c * pixels;
      sum_g += double{weight[c]} *
               WarpSum(pixels, [=](int64_t i) { return double{upstream[i]}; });
      sum_gx += double{weight[c]} * WarpSum(pixels, [=](int64_t i) {
                  return double{upstream[i]} * double{(in[i] - m) * s};
                });
    }
    const float mean_g = static_cast<float>(sum_g / static_cast<double>(size));
    const float mean_gx =
        static_cast<float>(sum_gx / static_cast<double>(size));
    for (int64_t i = Lane(); i < size; i += kWarp) {
      const int64_t at = g * size + i;
      dx[at] = LayerNormGradient(x[at], m, s, weight[i / pixels], dy[at],
                                 mean_g, mean_gx);
    }
  }
}

// One block per channel. The order of additions is fixed.
__global__ void GroupNormParametersKernel(BatchNormShape shape, int64_t groups,
                                          const float* x, const float* mean,
                                          const float* rstd, const float* dy,
                                          float* dgamma, float* dbeta) {
  __shared__ double gamma_sums[kThreads], beta_sums[kThreads];
  const int64_t c = blockIdx.x, group = c / (shape.channels / groups);
  double gamma_sum = 0, beta_sum = 0;
  for (int64_t i = threadIdx.x; i < shape.values(); i += kThreads) {
    const int64_t r = i / shape.pixels, g = r * groups + group;
    const int64_t at =
        (r * shape.channels + c) * shape.pixels + i % shape.pixels;
    gamma_sum += double{dy[at]} * double{(x[at] - mean[g]) * rstd[g]};
    beta_sum += double{dy[at]};
  }
  gamma_sums[threadIdx.x] = gamma_sum;
  beta_sums[threadIdx.x] = beta_sum;
  for (int width = kThreads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) {
      gamma_sums[threadIdx.x] += gamma_sums[threadIdx.x + width];
      beta_sums[threadIdx.x] += beta_sums[threadIdx.x + width];
    }
  }
  if (threadIdx.x == 0) {
    dgamma[c] += static_cast<float>(gamma_sums[0]);
    dbeta[c] += static_cast<float>(beta_sums[0]);
  }
}

}  // namespace

DeviceStatus LaunchSoftmax(cudaStream_t stream, int64_t rows, int64_t cols,
                           const float* x, float* y) {
  if (rows * cols == 0) return DeviceStatus();
  if (cols <= kLongestShortRow) {
    WithShortRow(cols, [&](auto per) {
      ShortSoftmaxKernel<per.value><<<WarpBlocks(rows), kThreads, 0, stream>>>(
          rows, static_cast<int>(cols), x, y);
    });
    return CudaStatus(cudaGetLastError());
  }
  SoftmaxKernel<<<WarpBlocks(rows), kThreads, 0, stream>>>(rows, cols, x, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchSoftmaxBackward(cudaStream_t stream, int64_t rows,
                                   int64_t cols, const float* y,
                                   const float* dy, float* dx) {
  if (rows * cols == 0) return DeviceStatus();
  SoftmaxBackwardKernel<<<WarpBlocks(rows), kThreads, 0, stream>>>(rows, cols,
                                                                   y, dy, dx);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchLayerNorm(cudaStream_t stream, int64_t rows, int64_t cols,
                             float epsilon, const float* x, const float* gamma,
                             const float* beta, float* y, float* mean,
                             float* rstd) {
  if (rows * cols == 0) return DeviceStatus();
  if (cols <= kLongestShortRow) {
    WithShortRow(cols, [&](auto per) {
      ShortNormKernel<per.value><<<WarpBlocks(rows), kThreads, 0, stream>>>(
          rows, static_cast<int>(cols), epsilon, x, gamma, beta, y, mean, rstd);
    });
    return CudaStatus(cudaGetLastError());
  }
  LayerNormKernel<<<WarpBlocks(rows), kThreads, 0, stream>>>(
      rows, cols, epsilon, x, gamma, beta, y, mean, rstd);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchLayerNormRowsBackward(cudaStream_t stream, int64_t rows,
                                         int64_t cols, const float* x,
                                         const float* gamma, const float* mean,
                                         const float* rstd, const float* dy,
                                         float* dx) {
  if (rows * cols == 0) return DeviceStatus();
  if (cols <= kLongestShortRow) {
    WithShortRow(cols, [&](auto per) {
      ShortNormBackwardKernel<per.value>
          <<<WarpBlocks(rows), kThreads, 0, stream>>>(
              rows, static_cast<int>(cols), x, gamma, mean, rstd, dy, dx);
    });
    return CudaStatus(cudaGetLastError());
  }
  LayerNormBackwardKernel<<<WarpBlocks(rows), kThreads, 0, stream>>>(
      rows, cols, x, gamma, mean, rstd, dy, dx);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchGroupNorm(cudaStream_t stream, const BatchNormShape& s,
                             int64_t groups, float epsilon, const float* x,
                             const float* gamma, const float* beta, float* y,
                             float* mean, float* rstd) {
  if (s.size() == 0) return DeviceStatus();
  GroupNormKernel<<<WarpBlocks(s.rows * groups), kThreads, 0, stream>>>(
      s, groups, epsilon, x, gamma, beta, y, mean, rstd);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchGroupNormBackward(cudaStream_t stream,
                                     const BatchNormShape& s, int64_t groups,
                                     const float* x, const float* gamma,
                                     const float* mean, const float* rstd,
                                     const float* dy, float* dx, float* dgamma,
                                     float* dbeta) {
  if (s.size() == 0) return DeviceStatus();
  GroupNormParametersKernel<<<static_cast<int>(s.channels), kThreads, 0,
                              stream>>>(s, groups, x, mean, rstd, dy, dgamma,
                                        dbeta);
  if (dx != nullptr) {
    GroupNormBackwardKernel<<<WarpBlocks(s.rows * groups), kThreads, 0,
                              stream>>>(s, groups, x, gamma, mean, rstd, dy,
                                        dx);
  }
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
