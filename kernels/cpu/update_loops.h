// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/cpu/vectorize.h"

// The loops of the sum and of the update, for callers that compile them for
// several instruction sets. Every element is computed by itself, so that all
// vector widths give the same bits.

namespace tributary {

// The loop of every rule. update(gradient, weight, index) returns the new
// weight of an element.
template <typename Update>
TRIBUTARY_INLINE void ForEachWeight(int64_t n, const float* gradient,
                                    const float* weight_in, float* weight_out,
                                    Update update) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    weight_out[i] = update(gradient[i], weight_in[i], i);
  }
}

// out = w[0] p[0] + w[1] p[1] + ..., in order, over n elements from `offset` of
// every part. With kAdd, the sum starts from out.
template <int kCount, bool kAdd>
TRIBUTARY_INLINE void SumParts(int64_t offset, int64_t n,
                               const float* const* parts, const float* weights,
                               float* out) {
  const UnalignedFloat* p[kCount];
  float w[kCount];
  for (int r = 0; r < kCount; ++r) {
    p[r] = parts[r] + offset;
    w[r] = weights[r];
  }
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    float sum = w[0] * p[0][i];
    if (kAdd) sum = out[i] + sum;
    for (int r = 1; r < kCount; ++r) sum += w[r] * p[r][i];
    out[i] = sum;
  }
}

template <bool kAdd>
TRIBUTARY_INLINE void SumUpToFour(int64_t offset, int64_t n, int count,
                                  const float* const* parts,
                                  const float* weights, float* out) {
  switch (count) {
    case 1:
      return SumParts<1, kAdd>(offset, n, parts, weights, out);
    case 2:
      return SumParts<2, kAdd>(offset, n, parts, weights, out);
    case 3:
      return SumParts<3, kAdd>(offset, n, parts, weights, out);
    default:
      return SumParts<4, kAdd>(offset, n, parts, weights, out);
  }
}

// out = the sum of weights[r] * parts[r] in order of r, over n elements from
// `offset` of every part. count is at least 1.
TRIBUTARY_INLINE void SumInOrder(int64_t offset, int64_t n, int count,
                                 const float* const* parts,
                                 const float* weights, float* out) {
  SumUpToFour<false>(offset, n, count, parts, weights, out);
  for (int r = 4; r < count; r += 4) {
    SumUpToFour<true>(offset, n, count - r, parts + r, weights + r, out);
  }
}

}  // namespace tributary
