// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launchers.h"

namespace tributary {
namespace {

// One thread per element of y.
__global__ void EmbeddingKernel(int64_t n, int64_t dim, const int64_t* ids,
                                const float* table, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const int64_t id = ids[i / dim];
    y[i] = id < 0 ? 0.0f : table[id * dim + i % dim];
  }
}

// The bag of position i: the last one that starts at or before i.
__device__ int64_t BagOf(const EmbeddingBags& bags, int64_t i) {
  int64_t first = 0, last = bags.count;
  while (last - first > 1) {
    const int64_t middle = (first + last) / 2;
    (bags.offsets[middle] <= i ? first : last) = middle;
  }
  return first;
}

__device__ float IdWeight(const EmbeddingBags& bags, int64_t bag, int64_t i) {
  const float weight = bags.weights == nullptr ? 1.0f : bags.weights[i];
  if (!bags.mean) return weight;
  return weight / static_cast<float>(bags.offsets[bag + 1] - bags.offsets[bag]);
}

// One thread per element of y.
__global__ void EmbeddingBagKernel(EmbeddingBags bags, int64_t dim,
                                   const float* table, float* y) {
  const int64_t n = bags.count * dim;
  for (int64_t at = ThreadIndex(); at < n; at += ThreadCount()) {
    const int64_t bag = at / dim;
    float sum = 0;
    for (int64_t i = bags.offsets[bag]; i < bags.offsets[bag + 1]; ++i) {
      sum += IdWeight(bags, bag, i) * table[bags.ids[i] * dim + at % dim];
    }
    y[at] = sum;
  }
}

// The gradient of position i and its weight: the position's own row of dy, or
// the row of its bag.
struct PlainSource {
  const float* dy;
  int64_t dim;
  __device__ const float* Row(int64_t i) const { return dy + i * dim; }
  __device__ float Scale(int64_t) const { return 1.0f; }
};
struct BagSource {
  EmbeddingBags bags;
  const float* dy;
  int64_t dim;
  __device__ const float* Row(int64_t i) const {
    return dy + BagOf(bags, i) * dim;
  }
  __device__ float Scale(int64_t i) const {
    return IdWeight(bags, BagOf(bags, i), i);
  }
};

// Adds without atomics, in the order of positions: one block per position, and
// the first position of an id adds the gradients of all positions of that id.
// Comparing all pairs of positions is fast enough for batches of some thousand
// ids.
template <typename Source>
__global__ void EmbeddingBackwardKernel(int64_t count, int64_t dim,
                                        const int64_t* ids, Source source,
                                        float* d_table) {
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const int64_t id = ids[i];
    if (id < 0) continue;  // the same for the whole block
    bool seen = false;
    for (int64_t j = threadIdx.x; j < i; j += blockDim.x) {
      seen = seen || ids[j] == id;
    }
    if (__syncthreads_or(seen)) continue;
    for (int64_t c = threadIdx.x; c < dim; c += blockDim.x) {
      float sum = d_table[id * dim + c];
      for (int64_t j = i; j < count; ++j) {
        if (ids[j] == id) sum += source.Scale(j) * source.Row(j)[c];
      }
      d_table[id * dim + c] = sum;
    }
  }
}

template <typename Source>
DeviceStatus LaunchBackward(cudaStream_t stream, int64_t count, int64_t dim,
                            const int64_t* ids, const Source& source,
                            float* d_table) {
  const int blocks = static_cast<int>(std::min<int64_t>(count, 1 << 16));
  const int threads =
      static_cast<int>(std::min<int64_t>(kThreads, (dim + 31) / 32 * 32));
  EmbeddingBackwardKernel<<<blocks, threads, 0, stream>>>(count, dim, ids,
                                                          source, d_table);
  return CudaStatus(cudaGetLastError());
}

// One warp per position.
__global__ void BagWeightsKernel(EmbeddingBags bags, int64_t dim,
                                 const float* table, const float* dy,
                                 float* d_weights) {
  for (int64_t i = WarpIndex(); i < bags.num_ids; i += WarpCount()) {
    const int64_t bag = BagOf(bags, i);
    const float* upstream = dy + bag * dim;
    const float* row = table + bags.ids[i] * dim;
    const double dot = WarpSum(
        dim, [=](int64_t c) { return double{upstream[c]} * double{row[c]}; });
    const int64_t size =
        bags.mean ? bags.offsets[bag + 1] - bags.offsets[bag] : 1;
    if (Lane() == 0) {
      d_weights[i] = static_cast<float>(dot / static_cast<double>(size));
    }
  }
}

// One warp per pair of features.
__global__ void DotInteractionKernel(int64_t batch, int64_t features,
                                     int64_t dim, const float* x, float* y) {
  const int64_t pairs = features * (features - 1) / 2;
  for (int64_t at = WarpIndex(); at < batch * pairs; at += WarpCount()) {
    int64_t j = at % pairs;
    int64_t i = 1;
    while (j >= i) j -= i++;
    const float* sample = x + at / pairs * features * dim;
    const float* a = sample + i * dim;
    const float* b = sample + j * dim;
    const double dot =
        WarpSum(dim, [=](int64_t c) { return double{a[c]} * double{b[c]}; });
    if (Lane() == 0) y[at] = static_cast<float>(dot);
  }
}

// One thread per element of dx; sums over the other features in their order.
__global__ void DotInteractionBackwardKernel(int64_t batch, int64_t features,
                                             int64_t dim, const float* x,
                                             const float* dy, float* dx) {
  const int64_t pairs = features * (features - 1) / 2;
  const int64_t n = batch * features * dim;
  for (int64_t at = ThreadIndex(); at < n; at += ThreadCount()) {
    const int64_t c = at % dim;
    const int64_t f = at / dim % features;
    const int64_t b = at / dim / features;
    float sum = 0;
    for (int64_t g = 0; g < features; ++g) {
      if (g == f) continue;
      const int64_t high = f > g ? f : g;
      const int64_t low = f > g ? g : f;
      const float upstream = dy[b * pairs + high * (high - 1) / 2 + low];
      sum += upstream * x[(b * features + g) * dim + c];
    }
    dx[at] = sum;
  }
}

}  // namespace

DeviceStatus LaunchEmbedding(cudaStream_t stream, int64_t count, int64_t dim,
                             const int64_t* ids, const float* table, float* y) {
  const int64_t n = count * dim;
  if (n == 0) return DeviceStatus();
  EmbeddingKernel<<<Blocks(n), kThreads, 0, stream>>>(n, dim, ids, table, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchEmbeddingBackward(cudaStream_t stream, int64_t count,
                                     int64_t dim, const int64_t* ids,
                                     const float* dy, float* d_table) {
  if (count * dim == 0) return DeviceStatus();
  return LaunchBackward(stream, count, dim, ids, PlainSource{dy, dim}, d_table);
}

DeviceStatus LaunchEmbeddingBag(cudaStream_t stream, const EmbeddingBags& bags,
                                int64_t dim, const float* table, float* y) {
  const int64_t n = bags.count * dim;
  if (n == 0) return DeviceStatus();
  EmbeddingBagKernel<<<Blocks(n), kThreads, 0, stream>>>(bags, dim, table, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchEmbeddingBagBackward(cudaStream_t stream,
                                        const EmbeddingBags& bags, int64_t dim,
                                        const float* table, const float* dy,
                                        float* d_table, float* d_weights) {
  if (bags.num_ids * dim == 0) return DeviceStatus();
  if (d_weights != nullptr) {
    BagWeightsKernel<<<WarpBlocks(bags.num_ids), kThreads, 0, stream>>>(
        bags, dim, table, dy, d_weights);
    if (DeviceStatus status = CudaStatus(cudaGetLastError()); !status.ok()) {
      return status;
    }
  }
  return LaunchBackward(stream, bags.num_ids, dim, bags.ids,
                        BagSource{bags, dy, dim}, d_table);
}

DeviceStatus LaunchDotInteraction(cudaStream_t stream, int64_t batch,
                                  int64_t features, int64_t dim, const float* x,
                                  float* y) {
  const int64_t pairs = batch * features * (features - 1) / 2;
  if (pairs == 0) return DeviceStatus();
  DotInteractionKernel<<<WarpBlocks(pairs), kThreads, 0, stream>>>(
      batch, features, dim, x, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchDotInteractionBackward(cudaStream_t stream, int64_t batch,
                                          int64_t features, int64_t dim,
                                          const float* x, const float* dy,
                                          float* dx) {
  const int64_t n = batch * features * dim;
  if (n == 0) return DeviceStatus();
  DotInteractionBackwardKernel<<<Blocks(n), kThreads, 0, stream>>>(
      batch, features, dim, x, dy, dx);
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
