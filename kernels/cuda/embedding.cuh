// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/row_grid.cuh"
#include "kernels/ops/embedding_ops.h"

namespace tributary {

// Code that the kernels of embeddings share.

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

}  // namespace tributary
