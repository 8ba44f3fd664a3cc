// SPDX-License-Identifier: Apache-2.0
// The gradients of attention in float32. A block takes a tile of rows of its
// own, queries or keys, and walks over tiles of the others. Sums have a fixed
// order and use no atomics.
#include <type_traits>

#include "kernels/cuda/attention/attention_gradients.cuh"
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

// The parts of shared memory.
template <typename Shape, bool kOfKeys>
struct BackwardTiles {
  static constexpr int kStatistics =
      kOfKeys ? Shape::kTileCols : Shape::kTileRows;
  float* own = SharedFloats();
  float* own_other = own + Shape::kOwn;  // v or dy
  float* tile = own_other + Shape::kOwn;
  float* tile_other = tile + Shape::kOther;  // dy or v
  float* weights = tile_other + Shape::kOther;
  float* logs = weights + Shape::kWeights;
  float* dots = logs + kStatistics;
};

// Turns dots of queries and keys into probabilities. query_at: where the
// statistics of an element's query are. seen: whether the query sees the key.
template <typename Shape, typename QueryAt, typename Seen>
__device__ void Normalize(float scale, const float* logs,
                          const QueryAt& query_at, const Seen& seen,
                          float (&p)[Shape::kRows][Shape::kCols]) {
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kCols; ++j) {
      const float power = TileExp(scale * p[i][j] - logs[query_at(i, j)]);
      p[i][j] = seen(i, j) ? power : 0.0f;
    }
  }
}

// Turns the gradients of the probabilities p into those of the scores.
template <typename Shape, typename QueryAt, typename Seen>
__device__ void Differentiate(float scale, const float* dots,
                              const QueryAt& query_at, const Seen& seen,
                              const float (&p)[Shape::kRows][Shape::kCols],
                              float (&dp)[Shape::kRows][Shape::kCols]) {
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kCols; ++j) {
      const float d_score =
          scale * (p[i][j] * (dp[i][j] - dots[query_at(i, j)]));
      dp[i][j] = seen(i, j) ? d_score : 0.0f;
    }
  }
}

// Stores the gradients of the block's own rows. row: the lane's first.
template <typename Shape, bool kOfKeys>
__device__ void StoreOwn(const AttentionCall& call,
                         const AttentionBackwardArrays& a,
                         const AttentionHead& head, int row,
                         const TileSums<Shape>& sums,
                         const TileSums<Shape>& value_sums) {
  const AttentionShape& s = call.s;
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
    const int at = row + 4 * i;
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

// With kOfKeys the block's own rows are keys and values, and the other rows are
// queries and their dy; without kOfKeys, vice versa. Shared memory: the own
// rows, a tile of the others, weights, logarithms, dots.
template <typename Shape, bool kOfKeys>
__global__ void __launch_bounds__(kTileThreads, 2)
    BackwardKernel(int64_t blocks, AttentionCall call,
                   AttentionBackwardArrays a) {
  const AttentionShape& s = call.s;
  const int dim = static_cast<int>(s.dim);
  const int queries = static_cast<int>(s.queries);
  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * Shape::kWarpRows;
  const auto [own, own_other, tile, tile_other, all_weights, logs, dots] =
      BackwardTiles<Shape, kOfKeys>();
  float* weights = all_weights + warp_row * Shape::kWeightPitch;
  constexpr int kStatistics = BackwardTiles<Shape, kOfKeys>::kStatistics;
  const int own_at = (warp_row + TileRow()) * Shape::kPitch;
  const int tile_at = TileColumn() * Shape::kPitch;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const AttentionPart part =
        AttentionPartAt(s, block, kOfKeys ? s.keys : s.queries,
                        Shape::kTileRows, s.causal && !kOfKeys);
    const AttentionHead head = AttentionHeadAt(s, part.head);
    const int visible =
        VisibleKeys<kOfKeys>(s, head, part.first + Shape::kTileRows);
    const BackwardRows rows =
        BackwardRowsAt<kOfKeys>(s, a, head, queries, visible);
    __syncthreads();
    LoadTiles<Shape, Shape::kTileRows>(call, rows.own, part.first, own,
                                       Shape::kOwn);
    if (!kOfKeys) {
      LoadStatistics<kStatistics>(a, head, part.first, queries, logs, dots);
    }
    TileSums<Shape> sums, value_sums;
    ClearSums<Shape>(sums);
    ClearSums<Shape>(value_sums);
    const int row = part.first + warp_row;  // the warp's first
    const BackwardRange<Shape::kTileCols, kOfKeys> walk(s, part.first, visible);
    for (int first = walk.begin; first < walk.end; first += Shape::kTileCols) {
      __syncthreads();
      LoadTiles<Shape, Shape::kTileCols>(call, rows.others, first, tile,
                                         Shape::kOther);
      if (kOfKeys) {
        LoadStatistics<kStatistics>(a, head, first, queries, logs, dots);
      }
      __syncthreads();
      const int last_row = row + Shape::kWarpRows - 1;
      const int last = first + Shape::kTileCols - 1;
      // None of these queries sees any of these keys.
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
      float p[Shape::kRows][Shape::kCols];
      DotTiles<Shape>(own + own_at, tile + tile_at, dim, p);
      Normalize<Shape>(s.scale, logs, query_at, seen, p);
      if constexpr (kOfKeys) {
        AddTile<Shape>(call.rounded, p, tile_other, weights, value_sums);
      }
      float dp[Shape::kRows][Shape::kCols];
      DotTiles<Shape>(own_other + own_at, tile_other + tile_at, dim, dp);
      Differentiate<Shape>(s.scale, dots, query_at, seen, p, dp);
      AddTile<Shape>(call.rounded, dp, tile, weights, sums);
    }
    StoreOwn<Shape, kOfKeys>(call, a, head, row + TileRow(), sums, value_sums);
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
