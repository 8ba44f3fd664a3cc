// SPDX-License-Identifier: Apache-2.0
// Batch normalization with the same order of sums as kernels/cpu/batch_norm.cc,
// and so with the same bits. One warp sums the pixels of each plane; a block of
// 32 x 32 threads sums the planes of 32 channels, 32 rows at a time.
#include "kernels/batch_norm.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/model_launchers.h"
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

// Two sums, which read some of the same arrays.
template <typename First, typename Second>
__global__ void SumPlanesTwiceKernel(BatchNormShape s, First first_term,
                                     Second second_term, double* first_planes,
                                     double* second_planes) {
  for (int64_t p = WarpIndex(); p < s.planes(); p += WarpCount()) {
    const int64_t c = p % s.channels, first = p * s.pixels;
    const SumPair sums = WarpSumPair(s.pixels, [=](int64_t i) {
      return SumPair{first_term(c, first + i), second_term(c, first + i)};
    });
    if (Lane() != 0) continue;
    first_planes[p] = sums.first;
    second_planes[p] = sums.second;
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

template <typename Term, typename Finish>
DeviceStatus SumRows(cudaStream_t stream, const BatchNormShape& s, Term term,
                     Finish finish) {
  const dim3 threads(kWarp, kWarp);
  const int blocks = static_cast<int>((s.channels + kWarp - 1) / kWarp);
  SumRowsKernel<<<blocks, threads, 0, stream>>>(s.rows, s.channels, term,
                                                finish);
  return CudaStatus(cudaGetLastError());
}

// planes: scratch, [rows, channels]; unused when a plane has one pixel.
template <typename Term, typename Finish>
DeviceStatus Sum(cudaStream_t stream, const BatchNormShape& s, Term term,
                 double* planes, Finish finish) {
  if (s.pixels == 1) return SumRows(stream, s, term, finish);
  if (s.planes() > 0) {
    SumPlanesKernel<<<WarpBlocks(s.planes()), kThreads, 0, stream>>>(s, term,
                                                                     planes);
  }
  if (DeviceStatus status = CudaStatus(cudaGetLastError()); !status.ok()) {
    return status;
  }
  return SumRows(stream, s, PlaneSum{planes}, finish);
}

// A block's z index is a row, its y index a channel, and its threads go along
// the pixels of a plane, so that no index needs a division. Calls use(channel,
// element) for every element. In QuadsKernel an element is four floats.
template <typename Use>
__device__ void ForEachElement(const BatchNormShape& s, Use use) {
  for (int64_t r = blockIdx.z; r < s.rows; r += gridDim.z) {
    for (int64_t c = blockIdx.y; c < s.channels; c += gridDim.y) {
      for (int64_t i = ThreadIndex(); i < s.pixels; i += ThreadCount()) {
        use(c, (r * s.channels + c) * s.pixels + i);
      }
    }
  }
}

// For a plane of one pixel the threads go along all elements.
template <typename Use>
__device__ void ForEachFeature(const BatchNormShape& s, Use use) {
  for (int64_t i = ThreadIndex(); i < s.size(); i += ThreadCount()) {
    use(i % s.channels, i);
  }
}

// map.Channel(c) computes the values that a channel's elements share,
// map(channel, i) element i, and map.Quad(channel, i) elements 4 i to 4 i + 3.
template <typename Map>
__global__ void FeaturesKernel(BatchNormShape s, Map map) {
  ForEachFeature(s, [&](int64_t c, int64_t i) { map(map.Channel(c), i); });
}
template <typename Map>
__global__ void PixelsKernel(BatchNormShape s, Map map) {
  ForEachElement(s, [&](int64_t c, int64_t i) { map(map.Channel(c), i); });
}
template <typename Map>
__global__ void QuadsKernel(BatchNormShape quads, Map map) {
  ForEachElement(quads,
                 [&](int64_t c, int64_t i) { map.Quad(map.Channel(c), i); });
}

bool IsAligned(const float* p) {
  return reinterpret_cast<uintptr_t>(p) % sizeof(float4) == 0;
}

template <typename Map>
DeviceStatus LaunchElements(cudaStream_t stream, BatchNormShape s,
                            const Map& map) {
  if (s.pixels == 1) {
    FeaturesKernel<<<Blocks(s.size()), kThreads, 0, stream>>>(s, map);
    return CudaStatus(cudaGetLastError());
  }
  const bool quads = s.pixels % 4 == 0 && map.aligned();
  if (quads) s.pixels /= 4;
  const auto most = [](int64_t n) {
    return static_cast<unsigned>(std::min<int64_t>(n, 65535));
  };
  const unsigned threads = s.pixels > 128 ? kThreads : s.pixels > 64 ? 128 : 64;
  const unsigned along = most((s.pixels + threads - 1) / threads);
  const unsigned channels = most(s.channels);
  // Many small planes take several rows per block.
  const int64_t rows = (1 << 15) / (int64_t{along} * channels);
  const dim3 blocks(along, channels,
                    most(std::clamp<int64_t>(rows, 1, s.rows)));
  if (quads) {
    QuadsKernel<<<blocks, threads, 0, stream>>>(s, map);
  } else {
    PixelsKernel<<<blocks, threads, 0, stream>>>(s, map);
  }
  return CudaStatus(cudaGetLastError());
}

__device__ float4 QuadAt(const float* x, int64_t i) {
  return reinterpret_cast<const float4*>(x)[i];
}

struct Normalize {
  const float *x, *gamma, *beta, *mean, *rstd;
  float* y;

  struct Shared {
    float mean, rstd, gamma, beta;
    __device__ float Of(float value) const {
      return LayerNormElement(value, mean, rstd, gamma, beta);
    }
  };
  bool aligned() const { return IsAligned(x) && IsAligned(y); }
  __device__ Shared Channel(int64_t c) const {
    return {mean[c], rstd[c], gamma[c], beta[c]};
  }
  __device__ void operator()(const Shared& of, int64_t i) const {
    y[i] = of.Of(x[i]);
  }
  __device__ void Quad(const Shared& of, int64_t i) const {
    const float4 v = QuadAt(x, i);
    reinterpret_cast<float4*>(y)[i] =
        make_float4(of.Of(v.x), of.Of(v.y), of.Of(v.z), of.Of(v.w));
  }
};

// Normalizes with the scale that follows from the variance.
struct NormalizeWith : Normalize {
  float epsilon;
  const float* variance;
  __device__ Shared Channel(int64_t c) const {
    return {mean[c], BatchNormScale(double{variance[c]}, epsilon), gamma[c],
            beta[c]};
  }
};

struct Differentiate {
  const float *x, *gamma, *mean, *rstd, *dy, *mean_g, *mean_gx;
  float* dx;

  struct Shared {
    float mean, rstd, gamma, mean_g, mean_gx;
    __device__ float Of(float value, float upstream) const {
      return BatchNormGradient(value, mean, rstd, gamma, upstream, mean_g,
                               mean_gx);
    }
  };
  bool aligned() const {
    return IsAligned(x) && IsAligned(dy) && IsAligned(dx);
  }
  __device__ Shared Channel(int64_t c) const {
    return {mean[c], rstd[c], gamma[c], mean_g[c], mean_gx[c]};
  }
  __device__ void operator()(const Shared& of, int64_t i) const {
    dx[i] = of.Of(x[i], dy[i]);
  }
  __device__ void Quad(const Shared& of, int64_t i) const {
    const float4 v = QuadAt(x, i), g = QuadAt(dy, i);
    reinterpret_cast<float4*>(dx)[i] = make_float4(
        of.Of(v.x, g.x), of.Of(v.y, g.y), of.Of(v.z, g.z), of.Of(v.w, g.w));
  }
};

// The sums of dy and of dy xhat per channel, in one pass over the planes.
DeviceStatus SumGradients(cudaStream_t stream, const BatchNormShape& s,
                          const Product& product, double* planes,
                          const StoreGradient& store_g,
                          const StoreGradient& store_gx) {
  const Value upstream{product.dy};
  if (s.pixels == 1) {
    if (DeviceStatus status = SumRows(stream, s, upstream, store_g);
        !status.ok()) {
      return status;
    }
    return SumRows(stream, s, product, store_gx);
  }
  double* const of_product = planes + s.planes();
  if (s.planes() > 0) {
    SumPlanesTwiceKernel<<<WarpBlocks(s.planes()), kThreads, 0, stream>>>(
        s, upstream, product, planes, of_product);
  }
  if (DeviceStatus status = CudaStatus(cudaGetLastError()); !status.ok()) {
    return status;
  }
  if (DeviceStatus status = SumRows(stream, s, PlaneSum{planes}, store_g);
      !status.ok()) {
    return status;
  }
  return SumRows(stream, s, PlaneSum{of_product}, store_gx);
}

}  // namespace

size_t BatchNormScratchBytes(const BatchNormShape& s) {
  return static_cast<size_t>(2 * s.planes() + s.channels) * sizeof(double);
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
  return LaunchElements(stream, s, Normalize{x, gamma, beta, mean, rstd, y});
}

DeviceStatus LaunchBatchNormWith(cudaStream_t stream, const BatchNormShape& s,
                                 float epsilon, const float* x,
                                 const float* gamma, const float* beta,
                                 const float* mean, const float* variance,
                                 float* y) {
  if (s.size() == 0) return DeviceStatus();
  return LaunchElements(
      stream, s,
      NormalizeWith{{x, gamma, beta, mean, nullptr, y}, epsilon, variance});
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
  if (DeviceStatus status =
          SumGradients(stream, s, Product{x, mean, rstd, dy}, planes,
                       StoreGradient{n, keep, mean_g, dbeta},
                       StoreGradient{n, keep, mean_gx, dgamma});
      !status.ok()) {
    return status;
  }
  if (dx == nullptr || s.size() == 0) return DeviceStatus();
  return LaunchElements(
      stream, s, Differentiate{x, gamma, mean, rstd, dy, mean_g, mean_gx, dx});
}

DeviceStatus LaunchChannelSum(cudaStream_t stream, const BatchNormShape& s,
                              const float* x, float beta, float* out,
                              double* scratch) {
  if (s.channels == 0) return DeviceStatus();
  return Sum(stream, s, Value{x}, scratch, StoreSum{beta, out});
}

}  // namespace tributary
