// SPDX-License-Identifier: Apache-2.0
// Attention that never stores the matrix of probabilities (Dao:
// FlashAttention-2, ICLR 2024), in float32. A block takes a tile of queries and
// walks over tiles of keys. Sums have a fixed order.
#include "kernels/cuda/attention/attention_tiles.cuh"

namespace tributary {
namespace {

// The running softmax of a lane's rows. `sum` covers only the lane's columns.
template <int kRows>
struct Softmax {
  float largest[kRows];
  float sum[kRows];
};

// Turns scores into weights, and scales the earlier sums down to the new
// largest scores. fmaxf ignores NaNs, but the weight of a NaN is a NaN.
template <typename Shape>
__device__ void UpdateSoftmax(float (&scores)[Shape::kRows][Shape::kCols],
                              Softmax<Shape::kRows>& softmax,
                              TileSums<Shape>& out) {
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
    float above = softmax.largest[i];
#pragma unroll
    for (int j = 0; j < Shape::kCols; ++j) above = fmaxf(above, scores[i][j]);
#pragma unroll
    for (int width = kTileColumns / 2; width > 0; width /= 2) {
      above = fmaxf(above, __shfl_xor_sync(0xffffffffu, above, width));
    }
    // Without a visible key so far, all weights become 0.
    const float base = above == -INFINITY ? 0.0f : above;
    const float fade = TileExp(softmax.largest[i] - base);
    float sum = softmax.sum[i] * fade;
#pragma unroll
    for (int j = 0; j < Shape::kCols; ++j) {
      scores[i][j] = TileExp(scores[i][j] - base);
      sum += scores[i][j];
    }
    softmax.sum[i] = sum;
    softmax.largest[i] = above;
#pragma unroll
    for (int f = 0; f < Shape::kFours; ++f) {
      out[i][f].x *= fade;
      out[i][f].y *= fade;
      out[i][f].z *= fade;
      out[i][f].w *= fade;
    }
  }
}

// Scales the scores of the tile of keys from `first` on, and hides the keys
// that a query does not see. row: the lane's first.
template <typename Shape>
__device__ void HideUnseen(const AttentionShape& s, int end, int row, int first,
                           float (&scores)[Shape::kRows][Shape::kCols]) {
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
    const int seen = SeenKeys(s, end, row + 4 * i) - first - TileColumn();
#pragma unroll
    for (int j = 0; j < Shape::kCols; ++j) {
      const float score = s.scale * scores[i][j];
      scores[i][j] = kTileColumns * j < seen ? score : -INFINITY;
    }
  }
}

// Shared memory: the queries, a tile of keys, a tile of values, weights.
template <typename Shape>
__global__ void __launch_bounds__(kTileThreads, 2)
    ForwardKernel(int64_t blocks, AttentionCall call,
                  AttentionForwardArrays a) {
  const AttentionShape& s = call.s;
  const int dim = static_cast<int>(s.dim);
  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * Shape::kWarpRows;
  float* queries = SharedFloats();
  float* keys = queries + Shape::kOwn;
  float* values = keys + Shape::kOther;
  float* weights = values + Shape::kOther + warp_row * Shape::kWeightPitch;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const AttentionPart part =
        AttentionPartAt(s, block, s.queries, Shape::kTileRows, s.causal);
    const AttentionHead head = AttentionHeadAt(s, part.head);
    const int last = part.first + Shape::kTileRows;
    const int end = s.causal && last < head.keys ? last : head.keys;
    const int row = part.first + warp_row + TileRow();  // the lane's first
    __syncthreads();
    const AttentionRows q[] = {
        {a.q + head.query, s.query.row, static_cast<int>(s.queries)}};
    const AttentionRows keys_and_values[] = {{a.k + head.key, s.key.row, end},
                                             {a.v + head.key, s.key.row, end}};
    LoadTiles<Shape, Shape::kTileRows>(call, q, part.first, queries, 0);
    Softmax<Shape::kRows> softmax;
    TileSums<Shape> out;
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      softmax.largest[i] = -INFINITY;
      softmax.sum[i] = 0;
    }
    ClearSums<Shape>(out);
    for (int first = 0; first < end; first += Shape::kTileCols) {
      __syncthreads();
      LoadTiles<Shape, Shape::kTileCols>(call, keys_and_values, first, keys,
                                         Shape::kOther);
      __syncthreads();
      const int warp_first = part.first + warp_row;
      // The warp's queries see none of these keys.
      if (s.causal && first >= warp_first + Shape::kWarpRows) continue;
      float scores[Shape::kRows][Shape::kCols];
      DotTiles<Shape>(queries + (warp_row + TileRow()) * Shape::kPitch,
                      keys + TileColumn() * Shape::kPitch, dim, scores);
      HideUnseen<Shape>(s, end, row, first, scores);
      UpdateSoftmax<Shape>(scores, softmax, out);
      AddTile<Shape>(call.rounded, scores, values, weights, out);
    }
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
      for (int width = kTileColumns / 2; width > 0; width /= 2) {
        softmax.sum[i] += __shfl_xor_sync(0xffffffffu, softmax.sum[i], width);
      }
    }
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      const int query = row + 4 * i;
      if (query < s.queries) {
        const float sum = softmax.sum[i];
        StoreSums<Shape>(call, out[i], sum > 0 ? 1.0f / sum : 0.0f,
                         a.y + head.out + query * s.out.row);
        if (TileColumn() == 0) {
          a.log_sum[head.rows + query] = softmax.largest[i] + logf(sum);
        }
      }
    }
  }
}

template <typename Shape>
DeviceStatus Launch(cudaStream_t stream, const AttentionCall& call,
                    const AttentionForwardArrays& a) {
  constexpr size_t kFloats = Shape::kOwn + 2 * Shape::kOther + Shape::kWeights;
  static_assert(kFloats * sizeof(float) <= kLargeShared);
  return LaunchParts(stream, ForwardKernel<Shape>,
                     AttentionParts(call.s, call.s.queries, Shape::kTileRows),
                     kTileThreads, kFloats * sizeof(float), call, a);
}

}  // namespace

DeviceStatus LaunchForward(cudaStream_t stream, const AttentionCall& call,
                           const AttentionForwardArrays& a) {
  int limit = 0;
  if (DeviceStatus status = SharedLimit(&limit); !status.ok()) return status;
  const int64_t dim = call.s.dim;
  if (limit < kLargeShared) {
    return dim <= 64 ? Launch<SmallShape>(stream, call, a)
                     : Launch<SmallWideShape>(stream, call, a);
  }
  if (dim <= 32) return Launch<TileShape<32, 8, 8, 4>>(stream, call, a);
  if (dim <= 64) return Launch<TileShape<64, 8, 8, 4>>(stream, call, a);
  if (dim <= 128) return Launch<TileShape<128, 4, 4, 4>>(stream, call, a);
  return Launch<TileShape<256, 2, 2, 2>>(stream, call, a);
}

}  // namespace tributary
