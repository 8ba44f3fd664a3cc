// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// Bag b holds ids[offsets[b]] ... ids[offsets[b + 1] - 1]. An empty bag gives
// zeros.
struct EmbeddingBags {
  int64_t count = 0;
  int64_t num_ids = 0;  // of all bags together
  const int64_t* ids = nullptr;
  const int64_t* offsets = nullptr;  // [count + 1], the first is 0
  const float* weights = nullptr;    // [num_ids] or null
  bool mean = false;                 // else the sum
};

// Embeddings and interactions. ids must be in [0, rows of the table); Embedding
// also allows -1.
class EmbeddingOps {
 public:
  virtual ~EmbeddingOps() = default;

  // y[i, :] = table[ids[i], :], or 0 where the id is -1. y: [count, dim].
  virtual void Embedding(int64_t count, int64_t dim, const int64_t* ids,
                         const float* table, float* y) = 0;
  // Adds dy[i, :] to d_table[ids[i], :] in the order of i. Skips ids of -1.
  virtual void EmbeddingBackward(int64_t count, int64_t dim, const int64_t* ids,
                                 const float* dy, float* d_table) = 0;
  // y[b, :] = the sum or mean of the table rows of bag b. y: [bags, dim].
  virtual void EmbeddingBag(const EmbeddingBags& bags, int64_t dim,
                            const float* table, float* y) = 0;
  // Adds to d_table. Overwrites d_weights [num_ids] unless it is null.
  virtual void EmbeddingBagBackward(const EmbeddingBags& bags, int64_t dim,
                                    const float* table, const float* dy,
                                    float* d_table, float* d_weights) = 0;
  // The dot products of all pairs of a sample's features, in the order (1,0),
  // (2,0), (2,1), ... x: [batch, features, dim], y: [batch, features (features
  // - 1) / 2].
  virtual void DotInteraction(int64_t batch, int64_t features, int64_t dim,
                              const float* x, float* y) = 0;
  virtual void DotInteractionBackward(int64_t batch, int64_t features,
                                      int64_t dim, const float* x,
                                      const float* dy, float* dx) = 0;
};

}  // namespace tributary
