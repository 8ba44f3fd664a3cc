// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores. A block takes a tile of queries, 16 per warp, and
// walks over tiles of keys, as in attention_forward.cu.
#include "kernels/cuda/attention/attention_tensor_cores.cuh"

namespace tributary {
namespace {

constexpr int kQueries = 128, kKeys = 64;
static_assert(kQueries == kWarpRows * kWarpsPerBlock);

// The running softmax of the lane's two rows, in powers of two. `sum` covers
// only the lane's columns.
struct Softmax {
  float largest[2];
  float sum[2];
};

// Turns scores into weights, and scales the earlier sums down to the new
// largest scores. fmaxf ignores NaNs, but the weight of a NaN is a NaN.
template <int kDim>
__device__ void UpdateSoftmax(float (&scores)[kKeys / 8][4], Softmax& softmax,
                              float (&out)[kDim / 8][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float above = softmax.largest[half];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      above = fmaxf(above, scores[n][2 * half]);
      above = fmaxf(above, scores[n][2 * half + 1]);
    }
    above = fmaxf(above, __shfl_xor_sync(0xffffffffu, above, 1));
    above = fmaxf(above, __shfl_xor_sync(0xffffffffu, above, 2));
    // Without a visible key so far, all weights become 0.
    const float base = above == -INFINITY ? 0.0f : above;
    const float fade = Exp2(softmax.largest[half] - base);
    float sum = softmax.sum[half] * fade;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) {
        scores[n][e] = Exp2(scores[n][e] - base);
        sum += scores[n][e];
      }
    }
    softmax.largest[half] = above;
    softmax.sum[half] = sum;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      out[n][2 * half] *= fade;
      out[n][2 * half + 1] *= fade;
    }
  }
}

#if TRIBUTARY_TENSOR_CORES

// Scales the scores of the tile of keys from `first` on, and hides the keys
// that a query does not see. warp_first: the warp's first query.
__device__ void HideUnseen(const AttentionShape& s, int end, int warp_first,
                           int first, float (&scores)[kKeys / 8][4]) {
  const float scale = s.scale * kLog2OfE;
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) scores[n][e] *= scale;
  }
  if (first + kKeys <= SeenKeys(s, end, warp_first)) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp_first + PartRow() + 8 * half;
    const int seen = SeenKeys(s, end, row) - first - PartColumn();
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      if (8 * n >= seen) scores[n][2 * half] = -INFINITY;
      if (8 * n + 1 >= seen) scores[n][2 * half + 1] = -INFINITY;
    }
  }
}

// Stores the lane's two rows and the logarithms of their sums.
template <int kDim>
__device__ void StoreQueries(const AttentionCall& call,
                             const AttentionForwardArrays& a,
                             const AttentionHead& head, int warp_first,
                             Softmax& softmax,
                             const float (&out)[kDim / 8][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = softmax.sum[half];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    softmax.sum[half] = sum;
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp_first + PartRow() + 8 * half;
    if (row < call.s.queries) {
      const float sum = softmax.sum[half];
      StoreParts<kDim>(call, out, half, sum > 0 ? 1.0f / sum : 0.0f,
                       a.y + head.out + row * call.s.out.row);
      if (PartColumn() == 0) {
        a.log_sum[head.rows + row] =
            softmax.largest[half] * 0.693147181f + logf(sum);
      }
    }
  }
}

#endif  // TRIBUTARY_TENSOR_CORES

// Shared memory: the queries, a tile of keys, a tile of values.
template <int kDim>
__global__ void __launch_bounds__(kThreads, kDim <= 64 ? 2 : 1)
    TensorForwardKernel(int64_t blocks, AttentionCall call,
                        AttentionForwardArrays a) {
#if TRIBUTARY_TENSOR_CORES
  constexpr int kPitch = kTensorPitch<kDim>;
  const AttentionShape& s = call.s;
  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * kWarpRows;
  auto* queries = reinterpret_cast<uint16_t*>(SharedFloats());
  uint16_t* keys = queries + kQueries * kPitch;
  uint16_t* values = keys + kKeys * kPitch;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const AttentionPart part =
        AttentionPartAt(s, block, s.queries, kQueries, s.causal);
    const AttentionHead head = AttentionHeadAt(s, part.head);
    const int last = part.first + kQueries;
    const int end = s.causal && last < head.keys ? last : head.keys;
    const int warp_first = part.first + warp_row;
    __syncthreads();
    const AttentionRows q[] = {
        {a.q + head.query, s.query.row, static_cast<int>(s.queries)}};
    const AttentionRows keys_and_values[] = {{a.k + head.key, s.key.row, end},
                                             {a.v + head.key, s.key.row, end}};
    LoadTensorTiles<kQueries, kDim, kThreads>(call, q, part.first, queries);
    __syncthreads();
    uint32_t query[kDim / 16][4];
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      LoadLeft<kDim>(queries + warp_row * kPitch, 16 * k, query[k]);
    }
    Softmax softmax{{-INFINITY, -INFINITY}, {0, 0}};
    float out[kDim / 8][4];
    ClearParts(out);
    for (int first = 0; first < end; first += kKeys) {
      __syncthreads();
      LoadTensorTiles<kKeys, kDim, kThreads>(call, keys_and_values, first,
                                             keys);
      __syncthreads();
      // The warp's queries see none of these keys.
      if (s.causal && first >= warp_first + kWarpRows) continue;
      float scores[kKeys / 8][4];
      ClearParts(scores);
#pragma unroll
      for (int k = 0; k < kDim / 16; ++k) {
        AddDots<kDim, kKeys>(query[k], keys, 16 * k, scores);
      }
      HideUnseen(s, end, warp_first, first, scores);
      UpdateSoftmax<kDim>(scores, softmax, out);
#pragma unroll
      for (int n = 0; n < kKeys / 8; n += 2) {
        uint32_t weights[4];
        PackLeft(scores[n], scores[n + 1], weights);
        AddRows<kDim>(weights, values + n * 8 * kPitch, out);
      }
    }
    StoreQueries<kDim>(call, a, head, warp_first, softmax, out);
  }
#endif
}

template <int kDim>
DeviceStatus Launch(cudaStream_t stream, const AttentionCall& call,
                    const AttentionForwardArrays& a) {
  constexpr size_t kElements = (kQueries + 2 * kKeys) * kTensorPitch<kDim>;
  return LaunchParts(stream, TensorForwardKernel<kDim>,
                     AttentionParts(call.s, call.s.queries, kQueries), kThreads,
                     kElements * sizeof(uint16_t), call, a);
}

}  // namespace

// Code for a capability below 8.0 may be compiled again for a later device, but
// it still does not use tensor cores.
DeviceStatus FindTensorCores(bool* found) {
  cudaFuncAttributes attributes{};
  DeviceStatus status =
      CudaStatus(cudaFuncGetAttributes(&attributes, TensorForwardKernel<64>));
  *found = status.ok() && attributes.ptxVersion >= 80;
  return status;
}

DeviceStatus LaunchTensorForward(cudaStream_t stream, const AttentionCall& call,
                                 const AttentionForwardArrays& a) {
  if (call.s.dim <= 32) return Launch<32>(stream, call, a);
  if (call.s.dim <= 64) return Launch<64>(stream, call, a);
  return Launch<128>(stream, call, a);
}

}  // namespace tributary
