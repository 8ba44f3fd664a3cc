// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/ops/embedding_ops.h"

namespace tributary {

// What the kernels of embeddings share.

// The bag of position i: the last one that starts at or before i.
__device__ inline int64_t BagOf(const EmbeddingBags& bags, int64_t i) {
  int64_t first = 0, last = bags.count;
  while (last - first > 1) {
    const int64_t middle = (first + last) / 2;
    (bags.offsets[middle] <= i ? first : last) = middle;
  }
  return first;
}

__device__ inline float IdWeight(const EmbeddingBags& bags, int64_t bag,
                                 int64_t i) {
  const float weight = bags.weights == nullptr ? 1.0f : bags.weights[i];
  if (!bags.mean) return weight;
  return weight / static_cast<float>(bags.offsets[bag + 1] - bags.offsets[bag]);
}

// Whether rows of `dim` floats can be accessed 16 bytes at a time.
inline bool TakesQuads(int64_t dim, const float* x, const float* y) {
  const uintptr_t bits =
      reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y);
  return dim % 4 == 0 && bits % sizeof(float4) == 0;
}

// Blocks whose threads along x take the columns of a row and along y the rows.
// Short rows share a block.
struct RowsGrid {
  dim3 blocks, threads;
};
inline RowsGrid GridOfRows(int64_t rows, int64_t cols) {
  unsigned width = 1;
  while (width < kWarp && width < cols) width *= 2;
  if (cols > kWarp) {
    width = static_cast<unsigned>(
        std::min<int64_t>(kThreads, (cols + kWarp - 1) / kWarp * kWarp));
  }
  const unsigned height = width < 128 ? 128 / width : 1;
  const auto blocks_x = static_cast<unsigned>(
      std::min<int64_t>((rows + height - 1) / height, 1 << 30));
  const auto blocks_y = static_cast<unsigned>(
      std::min<int64_t>((cols + width - 1) / width, 65535));
  return {dim3(blocks_x, blocks_y), dim3(width, height)};
}

}  // namespace tributary
