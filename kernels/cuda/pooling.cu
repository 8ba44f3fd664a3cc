// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch.h"
#include "kernels/cuda/model_launchers.h"
#include "kernels/pooling_math.h"

namespace tributary {
namespace {

// The plane, row and column of an element.
struct PoolPlace {
  int64_t plane, row, column;
};

__device__ PoolPlace OutputPlace(const Window& w, int64_t i) {
  const int64_t width = w.out_width();
  return {i / w.out_pixels(), i / width % w.out_height(), i % width};
}
__device__ PoolPlace InputPlace(const Window& w, int64_t i) {
  return {i / w.in_pixels(), i / w.width % w.height, i % w.width};
}

// One thread per output.
__global__ void MaxPoolKernel(int64_t n, Window w, const float* x, float* y,
                              int32_t* argmax) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const PoolPlace at = OutputPlace(w, i);
    const float* plane = x + at.plane * w.in_pixels();
    const int32_t where = WindowMax(w, at.row, at.column, plane);
    argmax[i] = where;
    y[i] = plane[where];
  }
}

__global__ void AveragePoolKernel(int64_t n, Window w, bool count_include_pad,
                                  const float* x, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const PoolPlace at = OutputPlace(w, i);
    y[i] = WindowAverage(w, count_include_pad, at.row, at.column,
                         x + at.plane * w.in_pixels());
  }
}

// The outputs [begin, end) along an axis whose windows cover input `at`.
struct Reach {
  int64_t begin, end;
};
__device__ Reach ReachOf(int64_t at, int64_t kernel, int64_t stride,
                         int64_t padding, int64_t out) {
  const int64_t shifted = at + padding;
  const int64_t begin = shifted < kernel ? 0 : (shifted - kernel) / stride + 1;
  const int64_t last = shifted / stride + 1;
  return {begin, last < out ? last : out};
}

// One thread per input sums the gradients of the windows that cover it, in
// their order.
template <typename Share>
__device__ float SumOfWindows(const Window& w, const PoolPlace& at,
                              Share share) {
  const Reach rows = ReachOf(at.row, w.kernel_height, w.stride_height,
                             w.padding_height, w.out_height());
  const Reach columns = ReachOf(at.column, w.kernel_width, w.stride_width,
                                w.padding_width, w.out_width());
  float sum = 0;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t c = columns.begin; c < columns.end; ++c) sum += share(r, c);
  }
  return sum;
}

__global__ void MaxPoolBackwardKernel(int64_t n, Window w, const float* dy,
                                      const int32_t* argmax, float* dx) {
  const int64_t width = w.out_width();
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const PoolPlace at = InputPlace(w, i);
    const int64_t place = i % w.in_pixels();
    const int64_t first = at.plane * w.out_pixels();
    dx[i] = SumOfWindows(w, at, [=](int64_t r, int64_t c) {
      const int64_t out = first + r * width + c;
      return argmax[out] == place ? dy[out] : 0.0f;
    });
  }
}

__global__ void AveragePoolBackwardKernel(int64_t n, Window w,
                                          bool count_include_pad,
                                          const float* dy, float* dx) {
  const int64_t width = w.out_width();
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const PoolPlace at = InputPlace(w, i);
    const float* plane = dy + at.plane * w.out_pixels();
    dx[i] = SumOfWindows(w, at, [=](int64_t r, int64_t c) {
      return plane[r * width + c] / AverageDivisor(count_include_pad,
                                                   SpanOfRow(w, r),
                                                   SpanOfColumn(w, c));
    });
  }
}

}  // namespace

DeviceStatus LaunchMaxPool(cudaStream_t stream, const Window& w, int64_t planes,
                           const float* x, float* y, int32_t* argmax) {
  const int64_t n = planes * w.out_pixels();
  if (n == 0) return DeviceStatus();
  MaxPoolKernel<<<Blocks(n), kThreads, 0, stream>>>(n, w, x, y, argmax);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchMaxPoolBackward(cudaStream_t stream, const Window& w,
                                   int64_t planes, const float* dy,
                                   const int32_t* argmax, float* dx) {
  const int64_t n = planes * w.in_pixels();
  if (n == 0) return DeviceStatus();
  MaxPoolBackwardKernel<<<Blocks(n), kThreads, 0, stream>>>(n, w, dy, argmax,
                                                            dx);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchAveragePool(cudaStream_t stream, const Window& w,
                               bool count_include_pad, int64_t planes,
                               const float* x, float* y) {
  const int64_t n = planes * w.out_pixels();
  if (n == 0) return DeviceStatus();
  AveragePoolKernel<<<Blocks(n), kThreads, 0, stream>>>(n, w, count_include_pad,
                                                        x, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchAveragePoolBackward(cudaStream_t stream, const Window& w,
                                       bool count_include_pad, int64_t planes,
                                       const float* dy, float* dx) {
  const int64_t n = planes * w.in_pixels();
  if (n == 0) return DeviceStatus();
  AveragePoolBackwardKernel<<<Blocks(n), kThreads, 0, stream>>>(
      n, w, count_include_pad, dy, dx);
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
