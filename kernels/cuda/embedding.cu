// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/embedding.cuh"
#include "kernels/cuda/launchers.h"

namespace tributary {
namespace {

// dim: Vectors in a row. A block's threads along y take positions, and its
// threads along x the columns.
template <typename Vector>
__global__ void EmbeddingKernel(int64_t count, int64_t dim, const int64_t* ids,
                                const Vector* table, Vector* y) {
  ForEachPlace(count, dim, [=](int64_t i, int64_t c) {
    const int64_t id = ids[i];
    y[i * dim + c] = id < 0 ? Vector{} : table[id * dim + c];
  });
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
  if (count * dim == 0) return DeviceStatus();
  if (TakesQuads(dim, table, y)) {
    const RowsGrid grid = GridOfRows(count, dim / 4);
    EmbeddingKernel<<<grid.blocks, grid.threads, 0, stream>>>(
        count, dim / 4, ids, reinterpret_cast<const float4*>(table),
        reinterpret_cast<float4*>(y));
  } else {
    const RowsGrid grid = GridOfRows(count, dim);
    EmbeddingKernel<<<grid.blocks, grid.threads, 0, stream>>>(count, dim, ids,
                                                              table, y);
  }
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchEmbeddingBag(cudaStream_t stream, const EmbeddingBags& bags,
                                int64_t dim, const float* table, float* y) {
  const int64_t n = bags.count * dim;
  if (n == 0) return DeviceStatus();
  EmbeddingBagKernel<<<Blocks(n), kThreads, 0, stream>>>(bags, dim, table, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchBagWeights(cudaStream_t stream, const EmbeddingBags& bags,
                              int64_t dim, const float* table, const float* dy,
                              float* d_weights) {
  if (bags.num_ids * dim == 0) return DeviceStatus();
  BagWeightsKernel<<<WarpBlocks(bags.num_ids), kThreads, 0, stream>>>(
      bags, dim, table, dy, d_weights);
  return CudaStatus(cudaGetLastError());
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
