// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/attention_work.cuh"

// Whether this device code may use tensor cores.
#define TRIBUTARY_TENSOR_CORES (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800)

namespace tributary {

// Products of bfloat16 tiles in shared memory, on tensor cores. Each warp works
// on kWarpRows rows of its own. Of a product's 16 x 8 part a lane holds rows
// PartRow() and PartRow() + 8, columns PartColumn() and PartColumn() + 1.

inline constexpr int kWarpRows = 16;

// Elements from one row of a tile to the next: an odd multiple of 16 bytes, so
// that eight rows are in different banks.
template <int kDim>
inline constexpr int kTensorPitch = kDim + 8;

__device__ inline int PartRow() { return Lane() / 4; }
__device__ inline int PartColumn() { return Lane() % 4 * 2; }

// Stores a pair of adjacent elements of a row, as far as they are below dim.
__device__ inline void StorePair(float x, float y, bool quads, int d, int dim,
                                 float* row) {
  if (quads) {
    if (d < dim) *reinterpret_cast<float2*>(row + d) = make_float2(x, y);
    return;
  }
  if (d < dim) row[d] = x;
  if (d + 1 < dim) row[d + 1] = y;
}

// Stores the lane's elements of row PartRow() + 8 half, times a factor.
template <int kDim>
__device__ void StoreParts(const AttentionCall& call,
                           const float (&parts)[kDim / 8][4], int half,
                           float factor, float* row) {
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
    StorePair(parts[n][2 * half] * factor, parts[n][2 * half + 1] * factor,
              call.quads, 8 * n + PartColumn(), static_cast<int>(call.s.dim),
              row);
  }
}

#if TRIBUTARY_TENSOR_CORES

// Copies kCount rows of each operand to shared memory, rounded to bfloat16, one
// tile after the other.
template <int kCount, int kDim, int kBlock, int kOperands>
__device__ void LoadTensorTiles(const AttentionCall& call,
                                const AttentionRows (&operands)[kOperands],
                                int first, uint16_t* tile) {
  ForEachFour<kCount, kDim, kBlock, 8>(
      operands, first, call.quads, static_cast<int>(call.s.dim),
      [&](int o, int r, int d, const float4& x) {
        uint16_t* row = tile + (o * kCount + r) * kTensorPitch<kDim>;
        *reinterpret_cast<uint2*>(row + d) =
            make_uint2(PackBfloat16(x.x, x.y), PackBfloat16(x.z, x.w));
      });
}

// Loads the left operand of a product: 16 rows of a tile, elements [d, d + 16).
template <int kDim>
__device__ void LoadLeft(const uint16_t* tile, int d, uint32_t (&a)[4]) {
  LoadMatrices(tile + Lane() % 16 * kTensorPitch<kDim> + d + Lane() / 16 * 8,
               a);
}

// Makes the left operand of a product from a 16 x 16 part of another product.
__device__ inline void PackLeft(const float (&left)[4], const float (&right)[4],
                                uint32_t (&a)[4]) {
  a[0] = PackBfloat16(left[0], left[1]);
  a[1] = PackBfloat16(left[2], left[3]);
  a[2] = PackBfloat16(right[0], right[1]);
  a[3] = PackBfloat16(right[2], right[3]);
}

// products += a times the transpose of elements [d, d + 16) of kCols rows.
template <int kDim, int kCols>
__device__ void AddDots(const uint32_t (&a)[4], const uint16_t* tile, int d,
                        float (&products)[kCols / 8][4]) {
  const uint16_t* row = tile +
                        (Lane() / 16 * 8 + Lane() % 8) * kTensorPitch<kDim> +
                        d + Lane() / 8 % 2 * 8;
#pragma unroll
  for (int n = 0; n < kCols / 8; n += 2) {
    uint32_t b[4];
    LoadMatrices(row + n * 8 * kTensorPitch<kDim>, b);
    MultiplyAdd(a, b[0], b[1], products[n]);
    MultiplyAdd(a, b[2], b[3], products[n + 1]);
  }
}

// sums += a times 16 rows of a tile.
template <int kDim>
__device__ void AddRows(const uint32_t (&a)[4], const uint16_t* tile,
                        float (&sums)[kDim / 8][4]) {
  const uint16_t* row =
      tile + Lane() % 16 * kTensorPitch<kDim> + Lane() / 16 * 8;
#pragma unroll
  for (int n = 0; n < kDim / 8; n += 2) {
    uint32_t b[4];
    LoadTransposed(row + n * 8, b);
    MultiplyAdd(a, b[0], b[1], sums[n]);
    MultiplyAdd(a, b[2], b[3], sums[n + 1]);
  }
}

template <int kParts>
__device__ void ClearParts(float (&parts)[kParts][4]) {
#pragma unroll
  for (int n = 0; n < kParts; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) parts[n][e] = 0;
  }
}

#endif  // TRIBUTARY_TENSOR_CORES

}  // namespace tributary
