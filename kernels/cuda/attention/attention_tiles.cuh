// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/attention_work.cuh"

namespace tributary {

// Products of tiles in shared memory in float32. A block of four warps works on
// kTileRows rows; a quarter of them belong to each warp. Lane l takes the rows
// l / 8 + 4 i of its warp and the columns l % 8 + 8 j. All rows of a tile have
// the same pitch, an odd multiple of 16 bytes, so that the lanes' accesses go
// to different banks.

inline constexpr int kTileThreads = 128;
inline constexpr int kTileColumns = 8;  // lanes beside each other

// The shape of a kernel. kPart: how many of a lane's columns of weights are in
// shared memory at a time.
template <int kDimOf, int kRowsOf, int kColsOf, int kPartOf>
struct TileShape {
  static constexpr int kDim = kDimOf, kRows = kRowsOf, kCols = kColsOf;
  static constexpr int kPart = kPartOf;
  static_assert(kDim % 32 == 0 && kCols % kPart == 0);
  static constexpr int kFours = kDim / 32;  // float4s of a lane in a sum
  static constexpr int kWarpRows = 4 * kRows;
  static constexpr int kTileRows = kWarpRows * (kTileThreads / kWarp);
  static constexpr int kTileCols = kTileColumns * kCols;
  static constexpr int kPitch = kDim + 4;
  static constexpr int kWeightPitch = kTileColumns * kPart + 4;
  // Sizes in floats.
  static constexpr int kOwn = kTileRows * kPitch;
  static constexpr int kOther = kTileCols * kPitch;
  static constexpr int kWeights = kTileRows * kWeightPitch;
};

// The shapes of most kernels need at most 99 KB of shared memory, which every
// device since capability 8.0 has. The small shapes need at most 64 KB.
inline constexpr int kLargeShared = 99 << 10;
using SmallShape = TileShape<64, 4, 4, 4>;
using SmallWideShape = TileShape<256, 1, 1, 1>;

__device__ inline int TileColumn() { return Lane() % kTileColumns; }
__device__ inline int TileRow() { return Lane() / kTileColumns; }

// e^x to within a relative error of 2^-22; 0 below -88.
__device__ inline float TileExp(float x) {
  x = x < -104.0f ? -104.0f : x;
  // The exact product is high + low.
  const float high = x * kLog2OfE;
  const float low = fmaf(x, 1.92596303e-8f, fmaf(x, kLog2OfE, -high));
  const float y = Exp2(high);
  return fmaf(y * low, 0.693147181f, y);
}

// Copies kCount rows of each operand to shared memory, `next` floats apart.
template <typename Shape, int kCount, int kOperands>
__device__ void LoadTiles(const AttentionCall& call,
                          const AttentionRows (&operands)[kOperands], int first,
                          float* tile, int next) {
  ForEachFour<kCount, Shape::kDim, kTileThreads, 16>(
      operands, first, call.quads, static_cast<int>(call.s.dim),
      [&](int o, int r, int d, float4 x) {
        if (call.rounded) {
          x = make_float4(RoundToBfloat16(x.x), RoundToBfloat16(x.y),
                          RoundToBfloat16(x.z), RoundToBfloat16(x.w));
        }
        *reinterpret_cast<float4*>(tile + o * next + r * Shape::kPitch + d) = x;
      });
}

// products[i][j] = row i of a times row j of b. a and b: the lane's first row.
template <typename Shape>
__device__ void DotTiles(const float* a, const float* b, int dim,
                         float (&products)[Shape::kRows][Shape::kCols]) {
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kCols; ++j) products[i][j] = 0;
  }
#pragma unroll 2
  for (int d = 0; d < dim; d += 4) {
    float4 y[Shape::kCols];
#pragma unroll
    for (int j = 0; j < Shape::kCols; ++j) {
      y[j] = *reinterpret_cast<const float4*>(
          b + j * kTileColumns * Shape::kPitch + d);
    }
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      const float4 x =
          *reinterpret_cast<const float4*>(a + i * 4 * Shape::kPitch + d);
#pragma unroll
      for (int j = 0; j < Shape::kCols; ++j) {
        float sum = fmaf(x.x, y[j].x, products[i][j]);
        sum = fmaf(x.y, y[j].y, sum);
        sum = fmaf(x.z, y[j].z, sum);
        products[i][j] = fmaf(x.w, y[j].w, sum);
      }
    }
  }
}

template <typename Shape>
using TileSums = float4[Shape::kRows][Shape::kFours];

template <typename Shape>
__device__ void ClearSums(TileSums<Shape>& sums) {
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
    for (int f = 0; f < Shape::kFours; ++f) {
      sums[i][f] = make_float4(0, 0, 0, 0);
    }
  }
}

// Adds to each of the lane's sums its row's weight times a row of the tile.
template <typename Shape>
__device__ void AddWeighted(const float (&weights)[Shape::kRows],
                            const float* row, TileSums<Shape>& sums) {
#pragma unroll
  for (int f = 0; f < Shape::kFours; ++f) {
    const float4 x = *reinterpret_cast<const float4*>(row + 32 * f);
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      float4& sum = sums[i][f];
      sum.x = fmaf(weights[i], x.x, sum.x);
      sum.y = fmaf(weights[i], x.y, sum.y);
      sum.z = fmaf(weights[i], x.z, sum.z);
      sum.w = fmaf(weights[i], x.w, sum.w);
    }
  }
}

// sums += weights times the rows of a tile. The warp's lanes exchange their
// weights through `shared`, the warp's part of shared memory.
template <typename Shape>
__device__ void AddTile(bool rounded,
                        const float (&weights)[Shape::kRows][Shape::kCols],
                        const float* tile, float* shared,
                        TileSums<Shape>& sums) {
  constexpr int kPitch = Shape::kWeightPitch;
  float* own = shared + TileRow() * kPitch;
  const float* row = tile + 4 * TileColumn();
#pragma unroll
  for (int part = 0; part < Shape::kCols; part += Shape::kPart) {
    __syncwarp();
    const auto put = [&](auto operand) {
#pragma unroll
      for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
        for (int j = 0; j < Shape::kPart; ++j) {
          own[i * 4 * kPitch + TileColumn() + j * kTileColumns] =
              operand(weights[i][part + j]);
        }
      }
    };
    if (rounded) {
      put([](float x) { return RoundToBfloat16(x); });
    } else {
      put([](float x) { return x; });
    }
    __syncwarp();
#pragma unroll 1
    for (int c = 0; c < Shape::kPart * kTileColumns; c += 4) {
      float x[Shape::kRows], y[Shape::kRows], z[Shape::kRows], w[Shape::kRows];
#pragma unroll
      for (int i = 0; i < Shape::kRows; ++i) {
        const float4 four =
            *reinterpret_cast<const float4*>(own + i * 4 * kPitch + c);
        x[i] = four.x;
        y[i] = four.y;
        z[i] = four.z;
        w[i] = four.w;
      }
      const float* at = row + (part * kTileColumns + c) * Shape::kPitch;
      AddWeighted<Shape>(x, at, sums);
      AddWeighted<Shape>(y, at + Shape::kPitch, sums);
      AddWeighted<Shape>(z, at + 2 * Shape::kPitch, sums);
      AddWeighted<Shape>(w, at + 3 * Shape::kPitch, sums);
    }
  }
}

// Stores the sums of a row times a factor.
template <typename Shape>
__device__ void StoreSums(const AttentionCall& call,
                          const float4 (&sums)[Shape::kFours], float factor,
                          float* row) {
#pragma unroll
  for (int f = 0; f < Shape::kFours; ++f) {
    const float4& x = sums[f];
    StoreFour(
        make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor),
        call.quads, 4 * TileColumn() + 32 * f, static_cast<int>(call.s.dim),
        row);
  }
}

}  // namespace tributary
