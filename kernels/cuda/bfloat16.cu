// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include "kernels/cuda/bfloat16.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launchers.h"

namespace tributary {
namespace {

static_assert(sizeof(__nv_bfloat16) == sizeof(uint16_t));

__device__ uint32_t Pair(float low, float high) {
  return Bfloat16Bits(low) | uint32_t{Bfloat16Bits(high)} << 16;
}

// One thread per eight adjacent elements.
__global__ void EightsKernel(int64_t n, const float4* x, uint4* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const float4 a = x[2 * i], b = x[2 * i + 1];
    y[i] = make_uint4(Pair(a.x, a.y), Pair(a.z, a.w), Pair(b.x, b.y),
                      Pair(b.z, b.w));
  }
}

// The kernels below take a grid whose x indices are columns and whose y indices
// are rows.
struct Place {
  int64_t row = blockIdx.y * int64_t{blockDim.y} + threadIdx.y;
  int64_t rows = gridDim.y * int64_t{blockDim.y};
  int64_t col = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  int64_t cols = gridDim.x * int64_t{blockDim.x};
};

__global__ void RowsKernel(int64_t rows, int64_t cols, const float* x,
                           int64_t row, uint16_t* y) {
  const Place at;
  for (int64_t r = at.row; r < rows; r += at.rows) {
    for (int64_t c = at.col; c < cols; c += at.cols) {
      y[r * row + c] = Bfloat16Bits(x[r * cols + c]);
    }
  }
}

__global__ void AddPaddedKernel(int64_t rows, int64_t cols, const float* x,
                                int64_t row, float beta, float* y) {
  const Place at;
  for (int64_t r = at.row; r < rows; r += at.rows) {
    for (int64_t c = at.col; c < cols; c += at.cols) {
      float* to = y + r * cols + c;
      *to = x[r * row + c] + (beta == 0 ? 0.0f : beta * *to);
    }
  }
}

// Short rows share a block.
struct Grid {
  dim3 blocks, threads;
};
Grid RowGrid(int64_t rows, int64_t cols) {
  const unsigned width = cols > 128 ? kThreads : cols > 32 ? 128 : kWarp;
  const unsigned height = kThreads / width;
  const auto blocks = [](int64_t n, unsigned per_block, int64_t most) {
    return static_cast<unsigned>(
        std::min((n + per_block - 1) / per_block, most));
  };
  return {dim3(blocks(cols, width, 1024), blocks(rows, height, 65535)),
          dim3(width, height)};
}

bool IsAligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

}  // namespace

DeviceStatus LaunchToBfloat16(cudaStream_t stream, int64_t rows, int64_t cols,
                              const float* x, int64_t row, uint16_t* y) {
  const int64_t n = rows * cols;
  if (n == 0) return DeviceStatus();
  if (row == cols && n % 8 == 0 && IsAligned(x) && IsAligned(y)) {
    EightsKernel<<<Blocks(n / 8), kThreads, 0, stream>>>(
        n / 8, reinterpret_cast<const float4*>(x), reinterpret_cast<uint4*>(y));
    return CudaStatus(cudaGetLastError());
  }
  const auto [blocks, threads] = RowGrid(rows, cols);
  RowsKernel<<<blocks, threads, 0, stream>>>(rows, cols, x, row, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchAddPadded(cudaStream_t stream, int64_t rows, int64_t cols,
                             const float* x, int64_t row, float beta,
                             float* y) {
  if (rows * cols == 0) return DeviceStatus();
  const auto [blocks, threads] = RowGrid(rows, cols);
  AddPaddedKernel<<<blocks, threads, 0, stream>>>(rows, cols, x, row, beta, y);
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
