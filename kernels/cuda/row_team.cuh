// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/launch.h"

namespace tributary {

// The threads that compute one row: a warp, or a block for a long row. Both sum
// in the order of grain_math.h, and so give the same bits. A team has
//   Index(), Size()   of a thread and of the team
//   First(), Step()   the team's first row, and the distance to its next one
//   Max(n, x)         the largest x[i]; n must be at least 1
//   Sum(n, term)      the sum of term(i) for i in [0, n)
// All threads get the results. They must take the same path through a loop
// over rows.

struct WarpTeam {
  __device__ static int Index() { return Lane(); }
  __device__ static int Size() { return kWarp; }
  __device__ static int64_t First() { return WarpIndex(); }
  __device__ static int64_t Step() { return WarpCount(); }
  __device__ static void Sync() { __syncwarp(); }
  __device__ static float Max(int64_t n, const float* x) {
    return WarpMax(n, x);
  }
  template <typename Term>
  __device__ static double Sum(int64_t n, Term term) {
    return WarpSum(n, term);
  }
};

// One warp adds what the others compute: the terms of a sum go through shared
// memory, in two buffers.
inline constexpr int kTermThreads = 512, kTermsAhead = 4;
inline constexpr int kTerms = kTermThreads * kTermsAhead;
inline constexpr int kRowThreads = kWarp + kTermThreads;

// The same memory for all sums of a kernel.
struct SharedTerms {
  double terms[2][kTerms];
  double total;
};
__device__ inline SharedTerms& TermsOfBlock() {
  __shared__ SharedTerms shared;
  return shared;
}

struct BlockTeam {
  __device__ static int Index() { return static_cast<int>(threadIdx.x); }
  __device__ static int Size() { return kRowThreads; }
  __device__ static int64_t First() { return blockIdx.x; }
  __device__ static int64_t Step() { return gridDim.x; }
  __device__ static void Sync() { __syncthreads(); }

  __device__ static float Max(int64_t n, const float* x) {
    __shared__ float warps[kRowThreads / kWarp];
    constexpr int kAhead = 8;
    float largest = x[0];
    for (int64_t i = Index(); i < n; i += kAhead * kRowThreads) {
      float v[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t at = i + u * kRowThreads;
        v[u] = x[at < n ? at : i];
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u)
        largest = v[u] > largest ? v[u] : largest;
    }
    for (int width = kWarp / 2; width > 0; width /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, largest, width);
      largest = other > largest ? other : largest;
    }
    if (Lane() == 0) warps[threadIdx.x / kWarp] = largest;
    __syncthreads();
    for (const float other : warps) {
      largest = other > largest ? other : largest;
    }
    __syncthreads();
    return largest;
  }

  template <typename Term>
  __device__ static double Sum(int64_t n, Term term) {
    SharedTerms& shared = TermsOfBlock();
    const bool adds = threadIdx.x < kWarp;
    const int64_t chunks = (n + kTerms - 1) / kTerms;
    double sum = 0;
    for (int64_t chunk = 0; chunk <= chunks; ++chunk) {
      if (!adds && chunk < chunks) {
        Fill(chunk * kTerms, n, term, shared.terms[chunk % 2]);
      }
      if (adds && chunk > 0) {
        const int64_t left = n - (chunk - 1) * kTerms;
        const int count = left < kTerms ? static_cast<int>(left) : kTerms;
        const double* from = shared.terms[(chunk - 1) % 2];
#pragma unroll 8
        for (int i = Lane(); i < count; i += kWarp) sum += from[i];
      }
      __syncthreads();
    }
    if (adds) {
      for (int width = kWarp / 2; width > 0; width /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, width);
      }
      if (threadIdx.x == 0) shared.total = sum;
    }
    __syncthreads();
    return shared.total;
  }

 private:
  // Computes all terms of a thread before it stores them, so that their loads
  // are in flight together.
  template <typename Term>
  __device__ static void Fill(int64_t first, int64_t n, Term term,
                              double* terms) {
    const int thread = Index() - kWarp;
    double t[kTermsAhead];
#pragma unroll
    for (int u = 0; u < kTermsAhead; ++u) {
      const int64_t at = first + thread + u * kTermThreads;
      t[u] = at < n ? term(at) : 0;
    }
#pragma unroll
    for (int u = 0; u < kTermsAhead; ++u)
      terms[thread + u * kTermThreads] = t[u];
  }
};

// Calls use(i, x[i]) for i in [0, n), where the threads of a team take turns.
// Several x[i] of a thread are loaded at once; use may overwrite them.
template <typename Team, typename Use>
__device__ void ForEachOf(int64_t n, const float* x, Use use) {
  constexpr int kAhead = 4;
  const int64_t size = Team::Size();
  for (int64_t i = Team::Index(); i < n; i += kAhead * size) {
    float v[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (i + u * size < n) v[u] = x[i + u * size];
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (i + u * size < n) use(i + u * size, v[u]);
    }
  }
}

// Rows of at least this length are worth a block.
inline constexpr int64_t kLongRow = 4096;

// Blocks for rows of BlockTeam. Few rows at a time, so that the second pass
// over a row finds it in the device's cache.
inline int RowBlocks(int64_t rows) {
  int device = 0, processors = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  return static_cast<int>(std::min<int64_t>(rows, 2 * processors));
}

}  // namespace tributary
