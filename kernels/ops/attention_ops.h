// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/limits.h"

namespace tributary {

// Element (b, t, h, d) of an operand of attention is at index b * batch + t *
// row + h * head + d.
struct AttentionStrides {
  int64_t batch = 0;
  int64_t row = 0;
  int64_t head = 0;
};

// y[b, t, h] = sum over keys s of softmax(scale q[b, t, h] . k[b, s, h]) times
// v[b, s, h] (Vaswani et al. 2017). Keys past a sample's key length are masked,
// and with `causal` also keys after the query.
struct AttentionShape {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t dim = 0;  // of a head, at most kMaxHeadDim
  bool causal = false;
  float scale = 1;
  const int64_t* key_lengths = nullptr;  // [batch], from 1; or null
  AttentionStrides query;                // of q and dq
  AttentionStrides key;                  // of k, v, dk, dv
  AttentionStrides out;                  // of y and dy

  int64_t rows() const { return batch * heads * queries; }
};

// Attention. No implementation stores the probabilities of all queries and keys
// at once.
class AttentionOps {
 public:
  virtual ~AttentionOps() = default;

  // scratch: AttentionScratch(s) floats, used only during the call.
  virtual int64_t AttentionScratch(const AttentionShape& s) = 0;
  // Fills log_sum [batch, heads, queries] with the logarithm of each query's
  // sum of exponentials, which the backward pass needs.
  virtual void Attention(const AttentionShape& s, const float* q,
                         const float* k, const float* v, float* y,
                         float* log_sum, float* scratch) = 0;
  // Overwrites dq, dk and dv.
  virtual void AttentionBackward(const AttentionShape& s, const float* q,
                                 const float* k, const float* v, const float* y,
                                 const float* log_sum, const float* dy,
                                 float* dq, float* dk, float* dv,
                                 float* scratch) = 0;
};

}  // namespace tributary
