// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/host/cuda_status.h"
#include "kernels/grain_math.h"

namespace tributary {

// Helpers that the kernels share: grid sizes, loops, reductions over a warp.

inline constexpr int kThreads = 256;
inline constexpr int kWarp = kSumLanes;  // 32: the lanes of a sum
inline constexpr int kWarpsPerBlock = kThreads / kWarp;

// Blocks of kThreads for n threads, capped: kernels loop with a grid stride.
inline int Blocks(int64_t n) {
  constexpr int64_t kMost = 1 << 16;
  return static_cast<int>(std::min(kMost, (n + kThreads - 1) / kThreads));
}

// Blocks for n warps, capped likewise.
inline int WarpBlocks(int64_t n) {
  constexpr int64_t kMost = 1 << 16;
  return static_cast<int>(
      std::min(kMost, (n + kWarpsPerBlock - 1) / kWarpsPerBlock));
}

#ifdef __CUDACC__

__device__ inline int64_t ThreadIndex() {
  return blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
}
__device__ inline int64_t ThreadCount() {
  return gridDim.x * int64_t{blockDim.x};
}

// The warp's index in the grid, the number of warps, and the thread's index in
// its warp. All lanes of a warp take the same path through a loop over warps.
__device__ inline int64_t WarpIndex() { return ThreadIndex() / kWarp; }
__device__ inline int64_t WarpCount() { return ThreadCount() / kWarp; }
__device__ inline int Lane() { return static_cast<int>(threadIdx.x % kWarp); }

// The sum of element(i) for i in [0, n), in the order of grain_math.h. Every
// lane gets it.
template <typename Element>
__device__ double WarpSum(int64_t n, Element element) {
  double sum = 0;
  // Unrolled, so that several loads are in flight.
#pragma unroll 8
  for (int64_t i = Lane(); i < n; i += kWarp) sum += element(i);
  for (int width = kWarp / 2; width > 0; width /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, width);
  }
  return __shfl_sync(0xffffffffu, sum, 0);
}

struct SumPair {
  double first, second;
};

// The sums of both fields of element(i), each as in WarpSum.
template <typename Element>
__device__ SumPair WarpSumPair(int64_t n, Element element) {
  SumPair sum = {0, 0};
#pragma unroll 4
  for (int64_t i = Lane(); i < n; i += kWarp) {
    const SumPair term = element(i);
    sum.first += term.first;
    sum.second += term.second;
  }
  for (int width = kWarp / 2; width > 0; width /= 2) {
    sum.first += __shfl_down_sync(0xffffffffu, sum.first, width);
    sum.second += __shfl_down_sync(0xffffffffu, sum.second, width);
  }
  return {__shfl_sync(0xffffffffu, sum.first, 0),
          __shfl_sync(0xffffffffu, sum.second, 0)};
}

// The largest x[i]; n must be at least 1. Every lane gets it.
__device__ inline float WarpMax(int64_t n, const float* x) {
  float largest = x[0];
  for (int64_t i = Lane(); i < n; i += kWarp) {
    largest = x[i] > largest ? x[i] : largest;
  }
  for (int width = kWarp / 2; width > 0; width /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, largest, width);
    largest = other > largest ? other : largest;
  }
  return largest;
}

#endif  // __CUDACC__

}  // namespace tributary
