// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/optimizer/optimizer_kinds.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/update_loops.h"
#include "kernels/cpu/vectorize.h"

namespace tributary {
namespace {

// Elements that WeightedSum processes at a time, so that `out` stays in the L1
// cache while the parts are added four at a time.
constexpr int64_t kBlock = 2048;

template <typename Rule, size_t... kState>
TRIBUTARY_INLINE void UpdateAll(Rule, std::index_sequence<kState...>,
                                const OptimizerStep& p, int64_t n,
                                const float* gradient, const float* weight_in,
                                float* weight_out, float* const* state) {
  // Copies, which no store can change.
  float* const states[] = {state[kState]..., nullptr};
  ForEachWeight(n, gradient, weight_in, weight_out,
                [&p, &states](float g, float w, [[maybe_unused]] int64_t i)
                    TRIBUTARY_INLINE_LAMBDA {
                      return Rule::Update(p, g, w, (states[kState] + i)...);
                    });
}

// Takes p by value, so that stores to the arrays cannot alias it.
TRIBUTARY_CLONES bool UpdateRange(OptimizerStep p, int64_t n, const float* g,
                                  const float* in, float* out,
                                  float* const* state) {
  return VisitRule(p, [&](auto rule) TRIBUTARY_INLINE_LAMBDA {
    UpdateAll(rule, std::make_index_sequence<rule.kStates.size()>(), p, n, g,
              in, out, state);
  });
}

// Sums one block, which starts at `offset` in every part.
TRIBUTARY_CLONES void SumBlock(int64_t offset, int64_t n, int count,
                               const float* const* parts, const float* weights,
                               float* out) {
  SumInOrder(offset, n, count, parts, weights, out);
}

TRIBUTARY_CLONES void Apply(int64_t n, float rate, float scale,
                            const float* direction, const float* weight_in,
                            float* weight_out) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    weight_out[i] = scale * weight_in[i] - rate * direction[i];
  }
}

// Adds n elements of one row to the sums of their columns; returns their sum.
// Every sum is exact, so the order of additions does not matter.
TRIBUTARY_CLONES double AddRow(int64_t n, float scale, double unit,
                               const float* gradient, double* columns) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    columns[i] += RoundedSquare(scale * gradient[i], unit);
  }
  return LaneSum(
      n, [=](int64_t i) { return RoundedSquare(scale * gradient[i], unit); });
}

TRIBUTARY_CLONES void RowDirection(int64_t n, OptimizerStep p, float row,
                                   float mean, const float* columns,
                                   const float* gradient, float* direction) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    direction[i] = AdafactorDirection(p, gradient[i] * p.gradient_scale,
                                      row * columns[i] / mean);
  }
}

// Calls use(row, column, first, n) for the part of each row in the slice; row
// and first are relative to the slice.
template <typename Use>
void ForEachRow(const FactoredSlice& slice, Use use) {
  int64_t column = slice.begin % slice.columns, first = 0;
  for (int64_t row = 0; first < slice.size; ++row) {
    const int64_t n = std::min(slice.columns - column, slice.size - first);
    use(row, column, first, n);
    first += n;
    column = 0;
  }
}

TRIBUTARY_CLONES double SumOfSquares(int64_t n, const float* x) {
  return LaneSum(n, [x](int64_t i) { return double{x[i]} * double{x[i]}; });
}

}  // namespace

void CpuOps::WeightedSum(int64_t n, int count, const float* const* parts,
                         const float* weights, float* out) {
  TRIBUTARY_CHECK(count >= 1);
  for (int64_t first = 0; first < n; first += kBlock) {
    SumBlock(first, std::min(kBlock, n - first), count, parts, weights,
             out + first);
  }
}

void CpuOps::OptimizerUpdate(const OptimizerStep& step, int64_t n,
                             const float* gradient, const float* weight_in,
                             float* weight_out, float* const* state) {
  TRIBUTARY_CHECK(!step.makes_direction);
  TRIBUTARY_CHECK(UpdateRange(step, n, gradient, weight_in, weight_out, state));
}

void CpuOps::OptimizerDirection(const OptimizerStep& step, int64_t n,
                                const float* gradient, const float* weight,
                                float* direction, float* const* state) {
  TRIBUTARY_CHECK(step.makes_direction);
  TRIBUTARY_CHECK(UpdateRange(step, n, gradient, weight, direction, state));
}

void CpuOps::ApplyDirection(int64_t n, float rate, float weight_scale,
                            const float* direction, const float* weight_in,
                            float* weight_out) {
  Apply(n, rate, weight_scale, direction, weight_in, weight_out);
}

void CpuOps::FactorSums(const FactoredSlice& slice, float scale, double unit,
                        const float* gradient, double* sums) {
  double* const columns = sums + slice.rows();
  std::fill_n(columns, slice.columns, 0.0);
  ForEachRow(slice, [&](int64_t row, int64_t column, int64_t first, int64_t n) {
    sums[row] = AddRow(n, scale, unit, gradient + first, columns + column);
  });
}

void CpuOps::FactoredDirection(const FactoredSlice& slice,
                               const OptimizerStep& step, float mean,
                               const float* rows, const float* columns,
                               const float* gradient, float* direction) {
  ForEachRow(slice, [&](int64_t row, int64_t column, int64_t first, int64_t n) {
    RowDirection(n, step, rows[row], mean, columns + column, gradient + first,
                 direction + first);
  });
}

void CpuOps::GrainSquares(int64_t n, int64_t grain, const float* x,
                          double* out) {
  for (int64_t first = 0; first < n; first += grain) {
    *out++ = SumOfSquares(std::min(grain, n - first), x + first);
  }
}

}  // namespace tributary
