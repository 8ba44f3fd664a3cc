// SPDX-License-Identifier: Apache-2.0
// The gradients of attention in float32. A block takes a tile of rows of its
// own, queries or keys, and walks over tiles of the others. Sums have a fixed
// order and use no atomics.
#include <type_traits>

#include "kernels/cuda/attention/attention_tiles.cuh"

namespace tributary {
namespace {

// The logarithms of the sums and the dots of kCount queries from `first` on.
template <int kCount>
__device__ void LoadStatistics(const AttentionBackwardArrays& a,
                               const AttentionHead& head, int first,
                               int queries, float* logs, float* dots) {
  for (int i = static_cast<int>(threadIdx.x); i < kCount; i += kTileThreads) {
    const bool there = first + i < queries;
    logs[i] = there ? a.log_sum[head.rows + first + i] : 0.0f;
    dots[i] = there ? a.dots[head.rows + first + i] : 0.0f;
  }
}

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

// With kOfKeys the block's own rows are keys and values, the others queries and
// their dy; without, the other way round. Shared memory: the own rows, a tile
// of the others, weights, logarithms, dots.
template <typename Shape, bool kOfKeys>
__global__ void __launch_bounds__(kTileThreads, 2)
    BackwardKernel(int64_t blocks, AttentionCall call,
                   AttentionBackwardArrays a) {
  constexpr int kRows = Shape::kRows, kCols = Shape::kCols;
  const AttentionShape& s = call.s;
  const int dim = static_cast<int>(s.dim);
  const int queries = static_cast<int>(s.queries);
  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * Shape::kWarpRows;
  float* own = SharedFloats();
  float* own_other = own + Shape::kOwn;  // v or dy
  float* tile = own_other + Shape::kOwn;
  float* tile_other = tile + Shape::kOther;  // dy or v
  float* all_weights = tile_other + Shape::kOther;
  float* weights = all_weights + warp_row * Shape::kWeightPitch;
  constexpr int kStatistics = kOfKeys ? Shape::kTileCols : Shape::kTileRows;
  float* logs = all_weights + Shape::kWeights;
  float* dots = logs + kStatistics;
  const int own_at = (warp_row + TileRow()) * Shape::kPitch;
  const int tile_at = TileColumn() * Shape::kPitch;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const AttentionPart part =
        AttentionPartAt(s, block, kOfKeys ? s.keys : s.queries,
                        Shape::kTileRows, s.causal && !kOfKeys);
    const AttentionHead head = AttentionHeadAt(s, part.head);
    const AttentionRows q{a.q + head.query, s.query.row, queries};
    const AttentionRows dy{a.dy + head.out, s.out.row, queries};
    const int past = part.first + Shape::kTileRows;
    const int visible =
        s.causal && !kOfKeys && past < head.keys ? past : head.keys;
    const AttentionRows k{a.k + head.key, s.key.row, visible};
    const AttentionRows v{a.v + head.key, s.key.row, visible};
    const AttentionRows own_rows[] = {kOfKeys ? k : q, kOfKeys ? v : dy};
    const AttentionRows other_rows[] = {kOfKeys ? q : k, kOfKeys ? dy : v};
    __syncthreads();
    LoadTiles<Shape, Shape::kTileRows>(call, own_rows, part.first, own,
                                       Shape::kOwn);
    if (!kOfKeys) {
      LoadStatistics<kStatistics>(a, head, part.first, queries, logs, dots);
    }
    TileSums<Shape> sums, value_sums;
    ClearSums<Shape>(sums);
    ClearSums<Shape>(value_sums);
    const int row = part.first + warp_row;  // the warp's first
    int begin = 0, end = kOfKeys ? queries : visible;
    if (kOfKeys && s.causal) {
      begin = part.first / Shape::kTileCols * Shape::kTileCols;
    }
    if (kOfKeys && part.first >= visible) end = 0;
    for (int first = begin; first < end; first += Shape::kTileCols) {
      __syncthreads();
      LoadTiles<Shape, Shape::kTileCols>(call, other_rows, first, tile,
                                         Shape::kOther);
      if (kOfKeys) {
        LoadStatistics<kStatistics>(a, head, first, queries, logs, dots);
      }
      __syncthreads();
      const int last_row = row + Shape::kWarpRows - 1;
      const int last = first + Shape::kTileCols - 1;
      // No query of these sees a key of these.
      if (s.causal && (kOfKeys ? last < row : first > last_row)) continue;
      const auto seen = [&](int i, int j) {
        const int own_row = row + TileRow() + 4 * i;
        const int other = first + TileColumn() + kTileColumns * j;
        const int query = kOfKeys ? other : own_row;
        return query < queries &&
               (kOfKeys ? own_row : other) < SeenKeys(s, visible, query);
      };
      const auto query_at = [&](int i, int j) {
        return kOfKeys ? TileColumn() + kTileColumns * j
                       : warp_row + TileRow() + 4 * i;
      };
      float p[kRows][kCols];
      DotTiles<Shape>(own + own_at, tile + tile_at, dim, p);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          const float power = TileExp(s.scale * p[i][j] - logs[query_at(i, j)]);
          p[i][j] = seen(i, j) ? power : 0.0f;
        }
      }
      if constexpr (kOfKeys) {
        AddTile<Shape>(call.rounded, p, tile_other, weights, value_sums);
      }
      float dp[kRows][kCols];
      DotTiles<Shape>(own_other + own_at, tile_other + tile_at, dim, dp);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          const float d_score =
              s.scale * (p[i][j] * (dp[i][j] - dots[query_at(i, j)]));
          dp[i][j] = seen(i, j) ? d_score : 0.0f;
        }
      }
      AddTile<Shape>(call.rounded, dp, tile, weights, sums);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int at = row + TileRow() + 4 * i;
      if (at >= (kOfKeys ? s.keys : s.queries)) continue;
      if constexpr (kOfKeys) {
        const int64_t offset = head.key + at * s.key.row;
        StoreSums<Shape>(call, sums[i], 1.0f, a.dk + offset);
        StoreSums<Shape>(call, value_sums[i], 1.0f, a.dv + offset);
      } else {
        StoreSums<Shape>(call, sums[i], 1.0f,
                         a.dq + head.query + at * s.query.row);
      }
    }
  }
}

template <typename Shape, bool kOfKeys>
DeviceStatus Launch(cudaStream_t stream, const AttentionCall& call,
                    const AttentionBackwardArrays& a) {
  constexpr size_t kFloats =
      2 * (Shape::kOwn + Shape::kOther) + Shape::kWeights +
      2 * (kOfKeys ? Shape::kTileCols : Shape::kTileRows);
  static_assert(kFloats * sizeof(float) <= kLargeShared);
  const int64_t rows = kOfKeys ? call.s.keys : call.s.queries;
  return LaunchParts(stream, BackwardKernel<Shape, kOfKeys>,
                     AttentionParts(call.s, rows, Shape::kTileRows),
                     kTileThreads, kFloats * sizeof(float), call, a);
}

}  // namespace

DeviceStatus LaunchBackward(cudaStream_t stream, const AttentionCall& call,
                            const AttentionBackwardArrays& a) {
  int limit = 0;
  if (DeviceStatus status = SharedLimit(&limit); !status.ok()) return status;
  const auto run = [&](auto shape) {
    using Shape = decltype(shape);
    const DeviceStatus status = Launch<Shape, false>(stream, call, a);
    return status.ok() ? Launch<Shape, true>(stream, call, a) : status;
  };
  const int64_t dim = call.s.dim;
  if (limit < kLargeShared) {
    return dim <= 64 ? run(SmallShape()) : run(SmallWideShape());
  }
  if (dim <= 32) return run(TileShape<32, 8, 4, 2>());
  if (dim <= 64) return run(TileShape<64, 8, 4, 2>());
  if (dim <= 128) return run(TileShape<128, 4, 3, 3>());
  return run(TileShape<256, 2, 1, 1>());
}

}  // namespace tributary
