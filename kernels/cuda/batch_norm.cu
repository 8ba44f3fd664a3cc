// SPDX-License-Identifier: Apache-2.0
// Batch normalization with the same order of sums as kernels/cpu/batch_norm.cc,
// and so with the same bits. One warp sums the pixels of each plane; a block of
// 32 x 32 threads sums the planes of 32 channels, 32 rows at a time.
#include "kernels/batch_norm.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/launchers.h"
#include "kernels/row_math.h"

namespace tributary {
namespace {

struct Value {
  const float* x;
  __device__ double operator()(int64_t, int64_t i) const {
    return double{x[i]};
  }
};

struct Square {
  const float* x;
  const double* center;
  __device__ double operator()(int64_t c, int64_t i) const {
    const double difference = double{x[i]} - center[c];
    return difference * difference;
  }
};

struct Product {
  const float *x, *mean, *rstd, *dy;
  __device__ double operator()(int64_t c, int64_t i) const {
    return double{dy[i]} * double{(x[i] - mean[c]) * rstd[c]};
  }
};

template <typename Term>
__global__ void SumPlanesKernel(BatchNormShape s, Term term, double* planes) {
  for (int64_t p = WarpIndex(); p < s.planes(); p += WarpCount()) {
    const int64_t c = p % s.channels, first = p * s.pixels;
    const double sum =
        WarpSum(s.pixels, [=](int64_t i) { return term(c, first + i); });
    if (Lane() == 0) planes[p] = sum;
  }
}

// Each block takes 32 channels. Thread (x, y) sums the rows y, y + 32, ... of
// channel x. finish(c, sum) runs once per channel.
template <typename Term, typename Finish>
__global__ void SumRowsKernel(int64_t rows, int64_t channels, Term term,
                              Finish finish) {
  __shared__ double sums[kWarp][kWarp + 1];
  const int64_t c = blockIdx.x * int64_t{kWarp} + threadIdx.x;
  double sum = 0;
  if (c < channels) {
    for (int64_t r = threadIdx.y; r < rows; r += kWarp) {
      sum += term(c, r * channels + c);
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  for (int height = kWarp / 2; height > 0; height /= 2) {
    __syncthreads();
    if (threadIdx.y < height) {
      sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + height][threadIdx.x];
    }
  }
  if (threadIdx.y == 0 && c < channels) finish(c, sums[0][threadIdx.x]);
}

struct PlaneSum {
  const double* planes;
  __device__ double operator()(int64_t, int64_t p) const { return planes[p]; }
};

struct StoreCenter {
  double n;
  double* center;
  float* mean;
  __device__ void operator()(int64_t c, double sum) const {
    center[c] = sum / n;
    mean[c] = static_cast<float>(sum / n);
  }
};

struct StoreScale {
  double n;
  float epsilon;
  float *rstd, *variance;
  __device__ void operator()(int64_t c, double squares) const {
    rstd[c] = BatchNormScale(squares / n, epsilon);
    variance[c] = UnbiasedVariance(squares, n);
  }
};

struct StoreGradient {
  double n;
  float keep;
  float *mean, *gradient;
  __device__ void operator()(int64_t c, double sum) const {
    mean[c] = static_cast<float>(sum / n);
    gradient[c] = (keep == 0 ? 0.0f : gradient[c]) + static_cast<float>(sum);
  }
};

struct StoreSum {
  float beta;
  float* out;
  __device__ void operator()(int64_t c, double sum) const {
    out[c] = static_cast<float>((beta == 0 ? 0.0 : double{out[c]}) + sum);
  }
};

// planes: scratch, [rows, channels]; unused when a plane has one pixel.
template <typename Term, typename Finish>
DeviceStatus Sum(cudaStream_t stream, const BatchNormShape& s, Term term,
                 double* planes, Finish finish) {
  const dim3 threads(kWarp, kWarp);
  const int blocks = static_cast<int>((s.channels + kWarp - 1) / kWarp);
  if (s.pixels == 1) {
    SumRowsKernel<<<blocks, threads, 0, stream>>>(s.rows, s.channels, term,
                                                  finish);
    return CudaStatus(cudaGetLastError());
  }
  if (s.planes() > 0)
    SumPlanesKernel<<<WarpBlocks(s.planes()), kThreads, 0, stream>>>(s, term,
                                                                     planes);
  if (DeviceStatus status = CudaStatus(cudaGetLastError()); !status.ok()) {
    return status;
  }
  SumRowsKernel<<<blocks, threads, 0, stream>>>(s.rows, s.channels,
                                                PlaneSum{planes}, finish);
  return CudaStatus(cudaGetLastError());
}

__global__ void NormalizeKernel(BatchNormShape s, const float* x,
                                const float* gamma, const float* beta,
                                const float* mean, const float* rstd,
                                float* y) {
  for (int64_t i = ThreadIndex(); i < s.size(); i += ThreadCount()) {
    const int64_t c = i / s.pixels % s.channels;
    y[i] = LayerNormElement(x[i], mean[c], rstd[c], gamma[c], beta[c]);
  }
}

__global__ void NormalizeWithKernel(BatchNormShape s, float epsilon,
                                    const float* x, const float* gamma,
                                    const float* beta, const float* mean,
                                    const float* variance, float* y) {
  for (int64_t i = ThreadIndex(); i < s.size(); i += ThreadCount()) {
    const int64_t c = i / s.pixels % s.channels;
    y[i] = LayerNormElement(x[i], mean[c],
                            BatchNormScale(double{variance[c]}, epsilon),
                            gamma[c], beta[c]);
  }
}

__global__ void DifferentiateKernel(BatchNormShape s, const float* x,
                                    const float* gamma, const float* mean,
                                    const float* rstd, const float* dy,
                                    const float* mean_g, const float* mean_gx,
                                    float* dx) {
  for (int64_t i = ThreadIndex(); i < s.size(); i += ThreadCount()) {
    const int64_t c = i / s.pixels % s.channels;
    dx[i] = BatchNormGradient(x[i], mean[c], rstd[c], gamma[c], dy[i],
                              mean_g[c], mean_gx[c]);
  }
}

}  // namespace

size_t BatchNormScratchBytes(const BatchNormShape& s) {
  return static_cast<size_t>(s.planes() + s.channels) * sizeof(double);
}

DeviceStatus LaunchBatchNorm(cudaStream_t stream, const BatchNormShape& s,
                             float epsilon, const float* x, const float* gamma,
                             const float* beta, float* y, float* mean,
                             float* rstd, float* variance, double* scratch) {
  if (s.size() == 0) return DeviceStatus();
  const double n = static_cast<double>(s.values());
  double* const planes = scratch + s.channels;
  if (DeviceStatus status =
          Sum(stream, s, Value{x}, planes, StoreCenter{n, scratch, mean});
      !status.ok()) {
    return status;
  }
  if (DeviceStatus status = Sum(stream, s, Square{x, scratch}, planes,
                                StoreScale{n, epsilon, rstd, variance});
      !status.ok()) {
    return status;
  }
  NormalizeKernel<<<Blocks(s.size()), kThreads, 0, stream>>>(s, x, gamma, beta,
                                                             mean, rstd, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchBatchNormWith(cudaStream_t stream, const BatchNormShape& s,
                                 float epsilon, const float* x,
                                 const float* gamma, const float* beta,
                                 const float* mean, const float* variance,
                                 float* y) {
  if (s.size() == 0) return DeviceStatus();
  NormalizeWithKernel<<<Blocks(s.size()), kThreads, 0, stream>>>(
      s, epsilon, x, gamma, beta, mean, variance, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchBatchNormBackward(cudaStream_t stream,
                                     const BatchNormShape& s, const float* x,
                                     const float* gamma, const float* mean,
                                     const float* rstd, const float* dy,
                                     float keep, float* dx, float* dgamma,
                                     float* dbeta, double* scratch) {
  if (s.channels == 0) return DeviceStatus();
  const double n = static_cast<double>(s.values());
  float* const mean_g = reinterpret_cast<float*>(scratch);
  float* const mean_gx = mean_g + s.channels;
  double* const planes = scratch + s.channels;
  if (DeviceStatus status = Sum(stream, s, Value{dy}, planes,
                                StoreGradient{n, keep, mean_g, dbeta});
      !status.ok()) {
    return status;
  }
  if (DeviceStatus status = Sum(stream, s, Product{x, mean, rstd, dy}, planes,
                                StoreGradient{n, keep, mean_gx, dgamma});
      !status.ok()) {
    return status;
  }
  if (dx == nullptr || s.size() == 0) return DeviceStatus();
  DifferentiateKernel<<<Blocks(s.size()), kThreads, 0, stream>>>(
      s, x, gamma, mean, rstd, dy, mean_g, mean_gx, dx);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchChannelSum(cudaStream_t stream, const BatchNormShape& s,
                              const float* x, float beta, float* out,
                              double* scratch) {
  if (s.channels == 0) return DeviceStatus();
  return Sum(stream, s, Value{x}, scratch, StoreSum{beta, out});
}

}  // namespace tributary
