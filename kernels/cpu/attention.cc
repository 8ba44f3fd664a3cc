// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/bfloat16_math.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/row_math.h"
#include "kernels/scalar_math.h"

namespace tributary {
namespace {

// Queries of a block. Only one block's probabilities are in memory at a time.
constexpr int64_t kQueries = 128;

// Rounds the number of visible scores up to whole lanes, at most n: a partly
// filled run of lanes costs several times as much as a full one.
TRIBUTARY_INLINE int64_t WholeLanes(int64_t seen, int64_t n) {
  return std::min(n, (seen + kSumLanes - 1) / kSumLanes * kSumLanes);
}

// Softmax over the first `seen` scores, in place. The other scores become 0 and
// add nothing to the sum.
TRIBUTARY_CLONES void SoftmaxSeen(int64_t seen, int64_t n, float* p,
                                  float* log_sum) {
  constexpr float kUnseen = -std::numeric_limits<float>::infinity();
  const int64_t end = WholeLanes(seen, n);
  for (int64_t j = seen; j < end; ++j) p[j] = kUnseen;
  const float largest = seen > 0 ? LaneMax(end, p) : 0.0f;
  TRIBUTARY_IVDEP
  for (int64_t j = 0; j < end; ++j) p[j] = Exp(p[j] - largest);
  const double sum = LaneSum(end, [p](int64_t j) { return double{p[j]}; });
  const float inverse = static_cast<float>(1.0 / sum);
  TRIBUTARY_IVDEP
  for (int64_t j = 0; j < seen; ++j) p[j] *= inverse;
  for (int64_t j = seen; j < n; ++j) p[j] = 0;
  *log_sum = largest + static_cast<float>(std::log(sum));
}

// Computes the same probabilities from the saved logarithm of the sum.
TRIBUTARY_CLONES void SoftmaxAgain(int64_t seen, int64_t n, float log_sum,
                                   float* p) {
  const int64_t end = WholeLanes(seen, n);
  TRIBUTARY_IVDEP
  for (int64_t j = 0; j < end; ++j) p[j] = Exp(p[j] - log_sum);
  for (int64_t j = seen; j < n; ++j) p[j] = 0;
}

// On return dp holds the gradient of the scores.
TRIBUTARY_CLONES void ScoreGradient(int64_t n, const float* p, float dot,
                                    float scale, float* dp) {
  TRIBUTARY_IVDEP
  for (int64_t j = 0; j < n; ++j) {
    dp[j] = scale * SoftmaxGradient(p[j], dp[j], dot);
  }
}

TRIBUTARY_CLONES float Dot(int64_t n, const float* a, const float* b) {
  return static_cast<float>(
      LaneSum(n, [a, b](int64_t i) { return double{a[i]} * double{b[i]}; }));
}

// Dot product with `a` rounded to bfloat16.
TRIBUTARY_CLONES float RoundedDot(int64_t n, const float* a, const float* b) {
  return static_cast<float>(LaneSum(n, [a, b](int64_t i) {
    return double{RoundToBfloat16(a[i])} * double{b[i]};
  }));
}

// A run of queries of one sample and head.
struct QueryBlock {
  int64_t first, count;
  int64_t keys;     // visible to the last query of the block
  int64_t q, k, o;  // offsets of the first query, key and output row
  int64_t log_sum;

  int64_t Seen(const AttentionShape& s, int64_t i) const {
    return s.causal ? std::min(keys, first + i + 1) : keys;
  }
};

template <typename Use>
void ForEachBlock(const AttentionShape& s, Use use) {
  for (int64_t b = 0; b < s.batch; ++b) {
    const int64_t length =
        s.key_lengths == nullptr
            ? s.keys
            : std::clamp<int64_t>(s.key_lengths[b], 0, s.keys);
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t first = 0; first < s.queries; first += kQueries) {
        const int64_t count = std::min(kQueries, s.queries - first);
        const auto at = [&](const AttentionStrides& strides, int64_t row) {
          return b * strides.batch + h * strides.head + row * strides.row;
        };
        use(QueryBlock{first, count,
                       s.causal ? std::min(length, first + count) : length,
                       at(s.query, first), at(s.key, 0), at(s.out, first),
                       (b * s.heads + h) * s.queries + first});
      }
    }
  }
}

// Computes the scores p: [count, keys].
void Scores(ProductPrecision precision, const AttentionShape& s,
            const QueryBlock& block, const float* q, const float* k, float* p) {
  CpuProduct(precision, false, true, block.count, block.keys, s.dim, s.scale,
             {q + block.q, s.query.row}, {k + block.k, s.key.row}, 0, p,
             block.keys);
}

void ZeroRows(int64_t rows, int64_t row, int64_t dim, float* x) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(x + r * row, dim, 0.0f);
}

}  // namespace

int64_t CpuOps::AttentionScratch(const AttentionShape& s) {
  return 2 * std::min(kQueries, s.queries) * s.keys;
}

void CpuOps::Attention(const AttentionShape& s, const float* q, const float* k,
                       const float* v, float* y, float* log_sum,
                       float* scratch) {
  ForEachBlock(s, [&](const QueryBlock& block) {
    float* p = scratch;
    Scores(precision_, s, block, q, k, p);
    for (int64_t i = 0; i < block.count; ++i) {
      SoftmaxSeen(block.Seen(s, i), block.keys, p + i * block.keys,
                  log_sum + block.log_sum + i);
    }
    CpuProduct(precision_, false, false, block.count, s.dim, block.keys, 1,
               {p, block.keys}, {v + block.k, s.key.row}, 0, y + block.o,
               s.out.row);
  });
}

void CpuOps::AttentionBackward(const AttentionShape& s, const float* q,
                               const float* k, const float* v, const float* y,
                               const float* log_sum, const float* dy, float* dq,
                               float* dk, float* dv, float* scratch) {
  const auto dot = [this](int64_t n, const float* a, const float* b) {
    return precision_ == ProductPrecision::kBfloat16 ? RoundedDot(n, a, b)
                                                     : Dot(n, a, b);
  };
  ForEachBlock(s, [&](const QueryBlock& block) {
    const int64_t n = block.keys;
    float* p = scratch;
    float* dp = scratch + block.count * n;
    if (block.first == 0) {
      ZeroRows(s.keys, s.key.row, s.dim, dk + block.k);
      ZeroRows(s.keys, s.key.row, s.dim, dv + block.k);
    }
    Scores(precision_, s, block, q, k, p);
    CpuProduct(precision_, false, true, block.count, n, s.dim, 1,
               {dy + block.o, s.out.row}, {v + block.k, s.key.row}, 0, dp, n);
    for (int64_t i = 0; i < block.count; ++i) {
      const int64_t row = block.o + i * s.out.row;
      SoftmaxAgain(block.Seen(s, i), n, log_sum[block.log_sum + i], p + i * n);
      ScoreGradient(n, p + i * n, dot(s.dim, dy + row, y + row), s.scale,
                    dp + i * n);
    }
    CpuProduct(precision_, false, false, block.count, s.dim, n, 1, {dp, n},
               {k + block.k, s.key.row}, 0, dq + block.q, s.query.row);
    CpuProduct(precision_, true, false, n, s.dim, block.count, 1, {dp, n},
               {q + block.q, s.query.row}, 1, dk + block.k, s.key.row);
    CpuProduct(precision_, true, false, n, s.dim, block.count, 1, {p, n},
               {dy + block.o, s.out.row}, 1, dv + block.k, s.key.row);
  });
}

}  // namespace tributary
