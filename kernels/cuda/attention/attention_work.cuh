// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/bfloat16_math.h"
#include "kernels/cuda/attention/attention_passes.h"
#include "kernels/cuda/attention/attention_ptx.cuh"
#include "kernels/cuda/launch.h"

namespace tributary {

// Code that the kernels of attention share: the part of a block, loads and
// stores of rows, exponentials.

inline constexpr float kLog2OfE = 1.44269504f;

// One head of one sample.
struct AttentionHead {
  int64_t query, key, out;  // offset of row 0 in each operand
  int64_t rows;             // rows of log_sum before this head
  int keys;                 // visible to the head
};

__device__ inline AttentionHead AttentionHeadAt(const AttentionShape& s,
                                                int64_t index) {
  const int64_t b = index / s.heads, h = index % s.heads;
  const auto at = [&](const AttentionStrides& strides) {
    return b * strides.batch + h * strides.head;
  };
  int64_t keys = s.keys;
  if (s.key_lengths != nullptr && s.key_lengths[b] < keys) {
    keys = s.key_lengths[b];
  }
  return {at(s.query), at(s.key), at(s.out), index * s.queries,
          static_cast<int>(keys)};
}

// The block that starts as number `part`, where each head has ceil(rows / tile)
// blocks. Blocks with much work start first; with `last_first` these are the
// blocks of the last rows.
struct AttentionPart {
  int64_t head;
  int first;  // row
};
__device__ inline AttentionPart AttentionPartAt(const AttentionShape& s,
                                                int64_t part, int64_t rows,
                                                int tile, bool last_first) {
  const int64_t heads = s.batch * s.heads;
  int64_t at = part / heads;
  if (last_first) at = (rows + tile - 1) / tile - 1 - at;
  return {part % heads, static_cast<int>(at) * tile};
}

// All dynamic shared memory of a block.
__device__ inline float* SharedFloats() {
  extern __shared__ float4 attention_shared[];
  return reinterpret_cast<float*>(attention_shared);
}

// Rows of an operand: row i is at x + i * row, for i below end.
struct AttentionRows {
  const float* x;
  int64_t row;
  int end;
};

// The first elements of a row from x on, and zeros after them.
__device__ inline float4 LoadFour(const float* x, int elements) {
  return make_float4(elements > 0 ? x[0] : 0.0f, elements > 1 ? x[1] : 0.0f,
                     elements > 2 ? x[2] : 0.0f, elements > 3 ? x[3] : 0.0f);
}

// Stores the first elements of `four` that are below dim.
__device__ inline void StoreFour(const float4& four, bool quads, int d, int dim,
                                 float* row) {
  float* x = row + d;
  if (quads) {
    if (d < dim) *reinterpret_cast<float4*>(x) = four;
    return;
  }
  if (d < dim) x[0] = four.x;
  if (d + 1 < dim) x[1] = four.y;
  if (d + 2 < dim) x[2] = four.z;
  if (d + 3 < dim) x[3] = four.w;
}

// Calls store(o, r, d, four) for rows [first, first + kCount) of each operand o
// in groups of four elements, which are zeros outside the operand. If
// `quads` is true, each thread has up to `kMost` loads under way at a time.
template <int kCount, int kDim, int kBlock, int kMost, int kOperands,
          typename Store>
__device__ void ForEachFour(const AttentionRows (&operands)[kOperands],
                            int first, bool quads, int dim, Store store) {
  constexpr int kFours = kDim / 4, kStep = kBlock / kFours;
  static_assert(kBlock % kFours == 0 && kCount % kStep == 0);
  constexpr int kEach = kCount / kStep;
  constexpr int kWanted = kMost / kOperands;
  constexpr int kAtOnce = kEach % 8 == 0 && kWanted >= 8   ? 8
                          : kEach % 4 == 0 && kWanted >= 4 ? 4
                                                           : 2;
  static_assert(kEach % kAtOnce == 0);
  const int thread = static_cast<int>(threadIdx.x);
  const int d = thread % kFours * 4, begin = thread / kFours;
  int end[kOperands];  // rows to load
  const float* x[kOperands];
#pragma unroll
  for (int o = 0; o < kOperands; ++o) {
    end[o] = d < dim ? operands[o].end - first : 0;
    x[o] = operands[o].x + (first + begin) * operands[o].row + d;
  }
  if (!quads) {
#pragma unroll 1
    for (int r = begin; r < kCount; r += kStep) {
#pragma unroll
      for (int o = 0; o < kOperands; ++o) {
        store(o, r, d, LoadFour(x[o], r < end[o] ? dim - d : 0));
        x[o] += kStep * operands[o].row;
      }
    }
    return;
  }
#pragma unroll 1
  for (int r = begin; r < kCount; r += kAtOnce * kStep) {
    float4 held[kOperands][kAtOnce];
#pragma unroll
    for (int o = 0; o < kOperands; ++o) {
#pragma unroll
      for (int e = 0; e < kAtOnce; ++e) {
        held[o][e] = r + e * kStep < end[o]
                         ? *reinterpret_cast<const float4*>(x[o])
                         : make_float4(0, 0, 0, 0);
        x[o] += kStep * operands[o].row;
      }
    }
#pragma unroll
    for (int o = 0; o < kOperands; ++o) {
#pragma unroll
      for (int e = 0; e < kAtOnce; ++e) {
        store(o, r + e * kStep, d, held[o][e]);
      }
    }
  }
}

// The keys that a query sees, of `keys`.
__device__ inline int SeenKeys(const AttentionShape& s, int keys, int query) {
  return s.causal && query < keys ? query + 1 : keys;
}

// Gets the bytes of shared memory that a block may have.
inline DeviceStatus SharedLimit(int* bytes) {
  int device = 0;
  if (DeviceStatus status = CudaStatus(cudaGetDevice(&device)); !status.ok()) {
    return status;
  }
  return CudaStatus(cudaDeviceGetAttribute(
      bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
}

// Enqueues a kernel on `blocks` parts. Large tiles exceed a kernel's default
// limit of shared memory, and several blocks of a processor need most of it.
template <typename Kernel, typename... Arguments>
DeviceStatus LaunchParts(cudaStream_t stream, Kernel kernel, int64_t blocks,
                         int threads, size_t bytes, Arguments... arguments) {
  if (blocks == 0) return DeviceStatus();
  if (DeviceStatus status = CudaStatus(cudaFuncSetAttribute(
          kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
          static_cast<int>(bytes)));
      !status.ok()) {
    return status;
  }
  if (DeviceStatus status = CudaStatus(cudaFuncSetAttribute(
          kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
          cudaSharedmemCarveoutMaxShared));
      !status.ok()) {
    return status;
  }
  const int grid = static_cast<int>(std::min<int64_t>(blocks, 1 << 30));
  kernel<<<grid, threads, bytes, stream>>>(blocks, arguments...);
  return CudaStatus(cudaGetLastError());
}

inline int64_t AttentionParts(const AttentionShape& s, int64_t rows, int tile) {
  return s.batch * s.heads * ((rows + tile - 1) / tile);
}

}  // namespace tributary
