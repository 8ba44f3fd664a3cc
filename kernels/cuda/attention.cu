// SPDX-License-Identifier: Apache-2.0
// Attention that never stores the matrix of probabilities (Dao, Fu, Ermon,
// Rudra, Re: FlashAttention, NeurIPS 2022). A warp takes one query and walks
// over tiles of 32 keys in shared memory. In the backward pass of keys and
// values it takes one key and walks over tiles of 32 queries. Each lane
// computes the score of one tile row; then all lanes sum over the tile, each
// for its part of the head's dimensions. Sums have a fixed order and use no
// atomics.
#include <cmath>
#include <type_traits>

#include "kernels/bfloat16_math.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launchers.h"
#include "kernels/scalar_math.h"

namespace tributary {
namespace {

constexpr unsigned kAll = 0xffffffffu;

// One head of one sample, and the number of keys visible to it.
struct Head {
  int64_t query, key, out;  // offset of row 0 in each operand
  int64_t keys;
  int64_t rows;  // rows of log_sum before this head
};

__device__ Head HeadAt(const AttentionShape& s, int64_t index) {
  const int64_t b = index / s.heads, h = index % s.heads;
  const auto at = [&](const AttentionStrides& strides) {
    return b * strides.batch + h * strides.head;
  };
  int64_t keys = s.keys;
  if (s.key_lengths != nullptr && s.key_lengths[b] < keys) {
    keys = s.key_lengths[b];
  }
  return {at(s.query), at(s.key), at(s.out), keys, index * s.queries};
}

__device__ float WarpSumOf(float x) {
  for (int width = kWarp / 2; width > 0; width /= 2) {
    x += __shfl_xor_sync(kAll, x, width);
  }
  return x;
}
__device__ float WarpMaxOf(float x) {
  for (int width = kWarp / 2; width > 0; width /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAll, x, width));
  }
  return x;
}

// An operand of a product, rounded to bfloat16 on request.
__device__ float Operand(bool rounded, float x) {
  return rounded ? RoundToBfloat16(x) : x;
}

// Loads rows [first, first + 32) of an operand; rows from `rows` on become
// zeros. The pitch dim + 1 avoids bank conflicts between the lanes of a column.
__device__ void LoadTile(const float* x, int64_t first, int64_t rows,
                         int64_t row, int dim, bool rounded, float* tile) {
  for (int i = static_cast<int>(threadIdx.x); i < kWarp * dim;
       i += static_cast<int>(blockDim.x)) {
    const int r = i / dim, d = i % dim;
    tile[r * (dim + 1) + d] =
        first + r < rows ? Operand(rounded, x[(first + r) * row + d]) : 0.0f;
  }
}

// Loads a row into this warp's part of shared memory; zeros if it is past the
// end.
__device__ void LoadRow(const float* x, bool there, int dim, bool rounded,
                        float* to) {
  for (int d = Lane(); d < dim; d += kWarp) {
    to[d] = there ? Operand(rounded, x[d]) : 0.0f;
  }
}

__device__ float DotOf(const float* a, const float* b, int dim) {
  float sum = 0;
  for (int d = 0; d < dim; ++d) sum += a[d] * b[d];
  return sum;
}

// sums[p] += the sum over tile rows j, in order, of lane j's weight times
// element Lane() + 32 p of row j.
template <int kParts>
__device__ void AddRows(float weight, const float* tile, int dim, bool rounded,
                        float (&sums)[kParts]) {
  weight = Operand(rounded, weight);
  for (int j = 0; j < kWarp; ++j) {
    const float w = __shfl_sync(kAll, weight, j);
    for (int p = 0; p < kParts; ++p) {
      const int d = Lane() + p * kWarp;
      if (d < dim) sums[p] += w * tile[j * (dim + 1) + d];
    }
  }
}

template <int kParts>
__device__ void StoreRow(const float (&sums)[kParts], float scale, int dim,
                         float* to) {
  for (int p = 0; p < kParts; ++p) {
    const int d = Lane() + p * kWarp;
    if (d < dim) to[d] = sums[p] * scale;
  }
}

// The work of a block: one head and kWarpsPerBlock of its queries or keys.
struct Work {
  int64_t head, row;  // the row of this warp
  int64_t first;      // the block's first row
};
__device__ Work WorkAt(int64_t block, int64_t rows) {
  const int64_t blocks = (rows + kWarpsPerBlock - 1) / kWarpsPerBlock;
  const int64_t first = block % blocks * kWarpsPerBlock;
  return {block / blocks, first + threadIdx.x / kWarp, first};
}

// Shared memory: a tile of keys, a tile of values, one query per warp.
template <int kParts>
__global__ void AttentionKernel(AttentionShape s, int64_t blocks, bool rounded,
                                const float* q, const float* k, const float* v,
                                float* y, float* log_sum) {
  extern __shared__ float shared[];
  const int dim = static_cast<int>(s.dim);
  float* keys = shared;
  float* values = keys + kWarp * (dim + 1);
  float* query = values + kWarp * (dim + 1) + threadIdx.x / kWarp * dim;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Work work = WorkAt(block, s.queries);
    const Head head = HeadAt(s, work.head);
    const bool there = work.row < s.queries;
    LoadRow(q + head.query + work.row * s.query.row, there, dim, rounded,
            query);
    const int64_t last = work.first + kWarpsPerBlock;  // of the block's queries
    const int64_t end = s.causal && last < head.keys ? last : head.keys;
    float largest = -INFINITY, sum = 0, out[kParts] = {};
    for (int64_t first = 0; first < end; first += kWarp) {
      __syncthreads();
      LoadTile(k + head.key, first, end, s.key.row, dim, rounded, keys);
      LoadTile(v + head.key, first, end, s.key.row, dim, rounded, values);
      __syncthreads();
      const int64_t key = first + Lane();
      const bool seen = key < end && (!s.causal || key <= work.row);
      const float score =
          seen ? s.scale * DotOf(query, keys + Lane() * (dim + 1), dim)
               : -INFINITY;
      const float above = fmaxf(largest, WarpMaxOf(score));
      // Skips a tile without visible keys. fmaxf ignores NaNs, so they are
      // checked.
      if (above == -INFINITY && !__any_sync(kAll, isnan(score))) continue;
      const float fade = Exp(largest - above);
      const float weight = seen ? Exp(score - above) : 0.0f;
      sum = sum * fade + WarpSumOf(weight);
      for (float& o : out) o *= fade;
      AddRows(weight, values, dim, rounded, out);
      largest = above;
    }
    if (there) {
      StoreRow(out, sum > 0 ? 1.0f / sum : 0.0f, dim,
               y + head.out + work.row * s.out.row);
      if (Lane() == 0) log_sum[head.rows + work.row] = largest + logf(sum);
    }
    __syncthreads();
  }
}

// dots[row] = dy . y of each query, for the derivative of the softmax.
__global__ void OutputDotKernel(AttentionShape s, int64_t rows, bool rounded,
                                const float* y, const float* dy, float* dots) {
  for (int64_t at = WarpIndex(); at < rows; at += WarpCount()) {
    const Head head = HeadAt(s, at / s.queries);
    const int64_t row = head.out + at % s.queries * s.out.row;
    const double dot = WarpSum(s.dim, [=](int64_t d) {
      return double{Operand(rounded, dy[row + d])} * double{y[row + d]};
    });
    if (Lane() == 0) dots[at] = static_cast<float>(dot);
  }
}

// Shared memory: a tile of keys, a tile of values, one query and its dy per
// warp.
template <int kParts>
__global__ void QueryGradientKernel(AttentionShape s, int64_t blocks,
                                    bool rounded, const float* q,
                                    const float* k, const float* v,
                                    const float* dy, const float* log_sum,
                                    const float* dots, float* dq) {
  extern __shared__ float shared[];
  const int dim = static_cast<int>(s.dim);
  float* keys = shared;
  float* values = keys + kWarp * (dim + 1);
  float* query = values + kWarp * (dim + 1) + threadIdx.x / kWarp * 2 * dim;
  float* upstream = query + dim;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Work work = WorkAt(block, s.queries);
    const Head head = HeadAt(s, work.head);
    const bool there = work.row < s.queries;
    LoadRow(q + head.query + work.row * s.query.row, there, dim, rounded,
            query);
    LoadRow(dy + head.out + work.row * s.out.row, there, dim, rounded,
            upstream);
    const float log = there ? log_sum[head.rows + work.row] : 0.0f;
    const float dot = there ? dots[head.rows + work.row] : 0.0f;
    const int64_t last = work.first + kWarpsPerBlock;
    const int64_t end = s.causal && last < head.keys ? last : head.keys;
    float sums[kParts] = {};
    for (int64_t first = 0; first < end; first += kWarp) {
      __syncthreads();
      LoadTile(k + head.key, first, end, s.key.row, dim, rounded, keys);
      LoadTile(v + head.key, first, end, s.key.row, dim, rounded, values);
      __syncthreads();
      const int64_t key = first + Lane();
      const bool seen = key < end && (!s.causal || key <= work.row) && there;
      const int at = Lane() * (dim + 1);
      const float p =
          seen ? Exp(s.scale * DotOf(query, keys + at, dim) - log) : 0.0f;
      const float dp = DotOf(upstream, values + at, dim);
      AddRows(s.scale * (p * (dp - dot)), keys, dim, rounded, sums);
    }
    if (there) {
      StoreRow(sums, 1.0f, dim, dq + head.query + work.row * s.query.row);
    }
    __syncthreads();
  }
}

// One warp per key. Shared memory: a tile of queries, a tile of their dy, one
// key and its value per warp.
template <int kParts>
__global__ void KeyGradientKernel(AttentionShape s, int64_t blocks,
                                  bool rounded, const float* q, const float* k,
                                  const float* v, const float* dy,
                                  const float* log_sum, const float* dots,
                                  float* dk, float* dv) {
  extern __shared__ float shared[];
  const int dim = static_cast<int>(s.dim);
  float* queries = shared;
  float* upstream = queries + kWarp * (dim + 1);
  float* key = upstream + kWarp * (dim + 1) + threadIdx.x / kWarp * 2 * dim;
  float* value = key + dim;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Work work = WorkAt(block, s.keys);
    const Head head = HeadAt(s, work.head);
    const bool there = work.row < s.keys;
    const int64_t at_key = head.key + work.row * s.key.row;
    LoadRow(k + at_key, there, dim, rounded, key);
    LoadRow(v + at_key, there, dim, rounded, value);
    float key_sums[kParts] = {}, value_sums[kParts] = {};
    const int64_t begin = s.causal ? work.first / kWarp * kWarp : 0;
    for (int64_t first = begin; first < s.queries; first += kWarp) {
      __syncthreads();
      LoadTile(q + head.query, first, s.queries, s.query.row, dim, rounded,
               queries);
      LoadTile(dy + head.out, first, s.queries, s.out.row, dim, rounded,
               upstream);
      __syncthreads();
      const int64_t query = first + Lane();
      const bool seen = query < s.queries && work.row < head.keys &&
                        (!s.causal || work.row <= query);
      const int64_t row = head.rows + (seen ? query : 0);
      const int at = Lane() * (dim + 1);
      const float score = s.scale * DotOf(queries + at, key, dim);
      const float p = seen ? Exp(score - log_sum[row]) : 0.0f;
      const float dp = DotOf(upstream + at, value, dim);
      const float d_score = seen ? s.scale * (p * (dp - dots[row])) : 0.0f;
      AddRows(d_score, queries, dim, rounded, key_sums);
      AddRows(p, upstream, dim, rounded, value_sums);
    }
    if (there) {
      StoreRow(key_sums, 1.0f, dim, dk + at_key);
      StoreRow(value_sums, 1.0f, dim, dv + at_key);
    }
    __syncthreads();
  }
}

// Bytes of two tiles and of `rows` rows per warp.
size_t SharedBytes(const AttentionShape& s, int64_t rows) {
  const int64_t floats =
      2 * kWarp * (s.dim + 1) + kWarpsPerBlock * rows * s.dim;
  return static_cast<size_t>(floats) * sizeof(float);
}

int64_t WorkBlocks(const AttentionShape& s, int64_t rows) {
  return s.batch * s.heads * ((rows + kWarpsPerBlock - 1) / kWarpsPerBlock);
}

int GridOf(int64_t blocks) {
  return static_cast<int>(std::min<int64_t>(blocks, int64_t{1} << 20));
}

// Large head dimensions exceed a kernel's default limit of shared memory.
template <typename Kernel>
DeviceStatus AllowShared(Kernel kernel, size_t bytes) {
  return CudaStatus(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes)));
}

template <int kParts>
DeviceStatus Forward(cudaStream_t stream, const AttentionShape& s, bool rounded,
                     const float* q, const float* k, const float* v, float* y,
                     float* log_sum) {
  const size_t bytes = SharedBytes(s, 1);
  const int64_t blocks = WorkBlocks(s, s.queries);
  if (DeviceStatus status = AllowShared(AttentionKernel<kParts>, bytes);
      !status.ok()) {
    return status;
  }
  AttentionKernel<kParts><<<GridOf(blocks), kThreads, bytes, stream>>>(
      s, blocks, rounded, q, k, v, y, log_sum);
  return CudaStatus(cudaGetLastError());
}

template <int kParts>
DeviceStatus Backward(cudaStream_t stream, const AttentionShape& s,
                      bool rounded, const float* q, const float* k,
                      const float* v, const float* log_sum, const float* dots,
                      const float* dy, float* dq, float* dk, float* dv) {
  const size_t bytes = SharedBytes(s, 2);
  const int64_t blocks = WorkBlocks(s, s.queries);
  if (DeviceStatus status = AllowShared(QueryGradientKernel<kParts>, bytes);
      !status.ok()) {
    return status;
  }
  if (DeviceStatus status = AllowShared(KeyGradientKernel<kParts>, bytes);
      !status.ok()) {
    return status;
  }
  QueryGradientKernel<kParts><<<GridOf(blocks), kThreads, bytes, stream>>>(
      s, blocks, rounded, q, k, v, dy, log_sum, dots, dq);
  const int64_t key_blocks = WorkBlocks(s, s.keys);
  KeyGradientKernel<kParts><<<GridOf(key_blocks), kThreads, bytes, stream>>>(
      s, key_blocks, rounded, q, k, v, dy, log_sum, dots, dk, dv);
  return CudaStatus(cudaGetLastError());
}

}  // namespace

DeviceStatus LaunchAttention(cudaStream_t stream, const AttentionShape& s,
                             bool rounded, const float* q, const float* k,
                             const float* v, float* y, float* log_sum) {
  if (s.rows() == 0) return DeviceStatus();
  if (s.dim <= 32) return Forward<1>(stream, s, rounded, q, k, v, y, log_sum);
  if (s.dim <= 64) return Forward<2>(stream, s, rounded, q, k, v, y, log_sum);
  if (s.dim <= 128) return Forward<4>(stream, s, rounded, q, k, v, y, log_sum);
  return Forward<8>(stream, s, rounded, q, k, v, y, log_sum);
}

DeviceStatus LaunchAttentionBackward(
    cudaStream_t stream, const AttentionShape& s, bool rounded, const float* q,
    const float* k, const float* v, const float* y, const float* log_sum,
    const float* dy, float* dots, float* dq, float* dk, float* dv) {
  if (s.rows() == 0) return DeviceStatus();
  OutputDotKernel<<<WarpBlocks(s.rows()), kThreads, 0, stream>>>(
      s, s.rows(), rounded, y, dy, dots);
  if (DeviceStatus status = CudaStatus(cudaGetLastError()); !status.ok()) {
    return status;
  }
  const auto run = [&](auto parts) {
    return Backward<decltype(parts)::value>(stream, s, rounded, q, k, v,
                                            log_sum, dots, dy, dq, dk, dv);
  };
  if (s.dim <= 32) return run(std::integral_constant<int, 1>());
  if (s.dim <= 64) return run(std::integral_constant<int, 2>());
  if (s.dim <= 128) return run(std::integral_constant<int, 4>());
  return run(std::integral_constant<int, 8>());
}

}  // namespace tributary
