#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/cuda_status.h"
#include "kernels/grain_math.h"

namespace tributary {

// What the kernels share: grid sizes, loops, reductions of a warp.

inline constexpr int kThreads = 256;
inline constexpr int kWarp = kSumLanes;  // 32: the lanes of a sum
inline constexpr int kWarpsPerBlock = kThreads / kWarp;

// Enough blocks of kThreads for n threads, within a bound: kernels stride.
inline int Blocks(int64_t n) {
  constexpr int64_t kMost = 1 << 16;
  return static_cast<int>(std::min(kMost, (n + kThreads - 1) / kThreads));
}

// Enough blocks for n warps.
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

// The index of this thread's warp in the grid and of the thread in its warp.
// All lanes of a warp take the same path through a loop over warps.
__device__ inline int64_t WarpIndex() { return ThreadIndex() / kWarp; }
__device__ inline int64_t WarpCount() { return ThreadCount() / kWarp; }
__device__ inline int Lane() { return static_cast<int>(threadIdx.x % kWarp); }

// The sum of element(i) for i in [0, n) in the order of grain_math.h, on every
// lane.
template <typename Element>
__device__ double WarpSum(int64_t n, Element element) {
  double sum = 0;
  for (int64_t i = Lane(); i < n; i += kWarp) sum += element(i);
  for (int width = kWarp / 2; width > 0; width /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, width);
  }
  return __shfl_sync(0xffffffffu, sum, 0);
}

// The largest x[i], n at least 1, on every lane.
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
