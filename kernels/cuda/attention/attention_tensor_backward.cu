// SPDX-License-Identifier: Apache-2.0
// The gradients of attention on tensor cores. A block takes a tile of rows of
// its own, queries or keys, 16 per warp, and walks over tiles of the others, as
// in attention_backward.cu.
#include "kernels/cuda/attention/attention_gradients.cuh"
#include "kernels/cuda/attention/attention_tensor_cores.cuh"

namespace tributary {
namespace {

constexpr int kBlock = 128;  // threads
constexpr int kOwn = kBlock / kWarp * kWarpRows;
constexpr int kOthers = 64;      // rows of a tile
constexpr int kStatistics = 64;  // queries of the block or of a tile
static_assert(kStatistics == kOwn && kStatistics == kOthers);

#if TRIBUTARY_TENSOR_CORES

// Rows of a tile whose scores exist at a time.
constexpr int kGroup = 32;

// The parts of shared memory.
template <int kPitch>
struct BackwardTiles {
  uint16_t* own = reinterpret_cast<uint16_t*>(SharedFloats());
  uint16_t* own_other = own + kOwn * kPitch;  // v or dy
  uint16_t* tile = own_other + kOwn * kPitch;
  uint16_t* tile_other = tile + kOthers * kPitch;  // dy or v
  float* logs = reinterpret_cast<float*>(tile_other + kOthers * kPitch);
  float* dots = logs + kStatistics;
};

// The logarithms of the sums, as powers of two, and the dots of the queries
// from `first` on.
__device__ void LoadStatistics(const AttentionBackwardArrays& a,
                               const AttentionHead& head, int first,
                               int queries, float* logs, float* dots) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= kStatistics) return;
  const bool there = first + i < queries;
  logs[i] = there ? a.log_sum[head.rows + first + i] * kLog2OfE : 0.0f;
  dots[i] = there ? a.dots[head.rows + first + i] : 0.0f;
}

// A warp's own rows as left operands. With kHeld they stay in registers.
template <int kDim, bool kHeld>
struct OwnRows {
  const uint16_t* tile;
  uint32_t held[kHeld ? kDim / 16 : 1][4];

  __device__ void Hold() {
    if constexpr (kHeld) {
#pragma unroll
      for (int k = 0; k < kDim / 16; ++k) LoadLeft<kDim>(tile, 16 * k, held[k]);
    }
  }
  __device__ void Dot(const uint16_t* others,
                      float (&products)[kGroup / 8][4]) const {
    ClearParts(products);
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      if constexpr (kHeld) {
        AddDots<kDim, kGroup>(held[k], others, 16 * k, products);
      } else {
        uint32_t a[4];
        LoadLeft<kDim>(tile, 16 * k, a);
        AddDots<kDim, kGroup>(a, others, 16 * k, products);
      }
    }
  }
};

// sums += weights times the rows of a group.
template <int kDim>
__device__ void AddGroup(const float (&weights)[kGroup / 8][4],
                         const uint16_t* rows, float (&sums)[kDim / 8][4]) {
#pragma unroll
  for (int n = 0; n < kGroup / 8; n += 2) {
    uint32_t a[4];
    PackLeft(weights[n], weights[n + 1], a);
    AddRows<kDim>(a, rows + n * 8 * kTensorPitch<kDim>, sums);
  }
}

// Stores the gradients of the block's own rows. row: the lane's first.
template <int kDim, bool kOfKeys>
__device__ void StoreOwn(const AttentionCall& call,
                         const AttentionBackwardArrays& a,
                         const AttentionHead& head, int row,
                         const float (&sums)[kDim / 8][4],
                         const float (&value_sums)[kDim / 8][4]) {
  const AttentionShape& s = call.s;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int at = row + 8 * half;
    if (at >= (kOfKeys ? s.keys : s.queries)) continue;
    if constexpr (kOfKeys) {
      const int64_t offset = head.key + at * s.key.row;
      StoreParts<kDim>(call, sums, half, 1.0f, a.dk + offset);
      StoreParts<kDim>(call, value_sums, half, 1.0f, a.dv + offset);
    } else {
      StoreParts<kDim>(call, sums, half, 1.0f,
                       a.dq + head.query + at * s.query.row);
    }
  }
}

// For each of the lane's two own rows: the range [low, high) of other rows that
// pair with it, and the row's statistics if it is a query.
template <bool kOfKeys>
struct LaneRows {
  __device__ LaneRows(const AttentionShape& s, int block_first, int warp_row,
                      int visible, const float* logs, const float* dots) {
    const int queries = static_cast<int>(s.queries);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = warp_row + PartRow() + 8 * half;
      const int at = block_first + i;
      if (kOfKeys) {
        low[half] = s.causal ? at : 0;
        high[half] = at < visible ? queries : 0;
      } else {
        low[half] = 0;
        high[half] = at < queries ? SeenKeys(s, visible, at) : 0;
        log[half] = logs[i];
        dot[half] = dots[i];
      }
    }
  }
  int low[2], high[2];
  float log[2] = {}, dot[2] = {};
};

// True when, between the warp's own rows and a group of other rows, each query
// sees each key. row, at: the first own row and the first of the group.
template <bool kOfKeys>
__device__ bool AllSeen(const AttentionShape& s, int row, int at, int queries,
                        int visible) {
  const int last_row = row + kWarpRows - 1;
  return kOfKeys
             ? last_row < visible && at + kGroup <= queries &&
                   (!s.causal || last_row <= at)
             : last_row < queries && at + kGroup <= SeenKeys(s, visible, row);
}

// Clears the elements of a group, from row `at` on, that do not pair with the
// lane's two own rows: those outside [low, high).
__device__ void HideUnseen(const int (&low)[2], const int (&high)[2], int at,
                           float (&p)[kGroup / 8][4],
                           float (&dp)[kGroup / 8][4]) {
#pragma unroll
  for (int n = 0; n < kGroup / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int other = at + 8 * n + PartColumn() + e % 2;
      if (other < low[e / 2] || other >= high[e / 2]) p[n][e] = dp[n][e] = 0;
    }
  }
}

// Turns dots of queries and keys into probabilities, and the gradients of the
// probabilities into those of the scores. log_at and dot_at: the statistics of
// an element's query.
template <typename LogAt, typename DotAt>
__device__ void NormalizeAndDifferentiate(float power_scale, float scale,
                                          const LogAt& log_at,
                                          const DotAt& dot_at,
                                          float (&p)[kGroup / 8][4],
                                          float (&dp)[kGroup / 8][4]) {
#pragma unroll
  for (int n = 0; n < kGroup / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      p[n][e] = Exp2(fmaf(power_scale, p[n][e], -log_at(n, e)));
      dp[n][e] = scale * (p[n][e] * (dp[n][e] - dot_at(n, e)));
    }
  }
}

#endif  // TRIBUTARY_TENSOR_CORES

// With kOfKeys the block's own rows are keys and values, and the other rows are
// queries and their dy; without kOfKeys, vice versa. Shared memory: the own
// rows, a tile of the others, logarithms, dots.
template <int kDim, bool kOfKeys>
__global__ void __launch_bounds__(kBlock, kDim <= 64 ? 3 : 2)
    TensorBackwardKernel(int64_t blocks, AttentionCall call,
                         AttentionBackwardArrays a) {
#if TRIBUTARY_TENSOR_CORES
  constexpr int kPitch = kTensorPitch<kDim>;
  const AttentionShape& s = call.s;
  const int queries = static_cast<int>(s.queries);
  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * kWarpRows;
  const auto [own, own_other, tile, tile_other, logs, dots] =
      BackwardTiles<kPitch>();
  const float power_scale = s.scale * kLog2OfE;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const AttentionPart part = AttentionPartAt(
        s, block, kOfKeys ? s.keys : s.queries, kOwn, s.causal && !kOfKeys);
    const AttentionHead head = AttentionHeadAt(s, part.head);
    const int visible = VisibleKeys<kOfKeys>(s, head, part.first + kOwn);
    const auto in = BackwardRowsAt<kOfKeys>(s, a, head, queries, visible);
    __syncthreads();
    LoadTensorTiles<kOwn, kDim, kBlock>(call, in.own, part.first, own);
    if (!kOfKeys) LoadStatistics(a, head, part.first, queries, logs, dots);
    __syncthreads();
    OwnRows<kDim, kDim <= 64> rows{own + warp_row * kPitch, {}};
    OwnRows<kDim, kDim <= (kOfKeys ? 32 : 64)> other_rows{
        own_other + warp_row * kPitch, {}};
    rows.Hold();
    other_rows.Hold();
    float sums[kDim / 8][4], value_sums[kDim / 8][4];
    ClearParts(sums);
    ClearParts(value_sums);
    const int row = part.first + warp_row;
    const LaneRows<kOfKeys> lane(s, part.first, warp_row, visible, logs, dots);
    const BackwardRange<kOthers, kOfKeys> walk(s, part.first, visible);
    for (int first = walk.begin; first < walk.end; first += kOthers) {
      __syncthreads();
      LoadTensorTiles<kOthers, kDim, kBlock>(call, in.others, first, tile);
      if (kOfKeys) LoadStatistics(a, head, first, queries, logs, dots);
      __syncthreads();
#pragma unroll 1
      for (int group = 0; group < kOthers; group += kGroup) {
        const int at = first + group;
        if (at >= walk.end) break;
        // None of these queries sees any of these keys.
        if (s.causal &&
            (kOfKeys ? at + kGroup <= row : at >= row + kWarpRows)) {
          continue;
        }
        const uint16_t* others = tile + group * kPitch;
        const uint16_t* others_other = tile_other + group * kPitch;
        float p[kGroup / 8][4], dp[kGroup / 8][4];
        rows.Dot(others, p);
        other_rows.Dot(others_other, dp);
        const auto at_query = [&](const float* all, const float(&two)[2]) {
          return [=, &two](int n, int e) {
            const int column = group + 8 * n + PartColumn() + e % 2;
            return kOfKeys ? all[column] : two[e / 2];
          };
        };
        NormalizeAndDifferentiate(power_scale, s.scale,
                                  at_query(logs, lane.log),
                                  at_query(dots, lane.dot), p, dp);
        if (!AllSeen<kOfKeys>(s, row, at, queries, visible)) {
          HideUnseen(lane.low, lane.high, at, p, dp);
        }
        if constexpr (kOfKeys) AddGroup<kDim>(p, others_other, value_sums);
        AddGroup<kDim>(dp, others, sums);
      }
    }
    StoreOwn<kDim, kOfKeys>(call, a, head, row + PartRow(), sums, value_sums);
  }
#endif
}

template <int kDim, bool kOfKeys>
DeviceStatus Launch(cudaStream_t stream, const AttentionCall& call,
                    const AttentionBackwardArrays& a) {
  constexpr size_t kBytes =
      2 * (kOwn + kOthers) * kTensorPitch<kDim> * sizeof(uint16_t) +
      2 * kStatistics * sizeof(float);
  return LaunchParts(
      stream, TensorBackwardKernel<kDim, kOfKeys>,
      AttentionParts(call.s, kOfKeys ? call.s.keys : call.s.queries, kOwn),
      kBlock, kBytes, call, a);
}

template <int kDim>
DeviceStatus LaunchBoth(cudaStream_t stream, const AttentionCall& call,
                        const AttentionBackwardArrays& a) {
  const DeviceStatus status = Launch<kDim, false>(stream, call, a);
  return status.ok() ? Launch<kDim, true>(stream, call, a) : status;
}

}  // namespace

DeviceStatus LaunchTensorBackward(cudaStream_t stream,
                                  const AttentionCall& call,
                                  const AttentionBackwardArrays& a) {
  if (call.s.dim <= 32) return LaunchBoth<32>(stream, call, a);
  if (call.s.dim <= 64) return LaunchBoth<64>(stream, call, a);
  return LaunchBoth<128>(stream, call, a);
}

}  // namespace tributary
