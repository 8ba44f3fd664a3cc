#include <algorithm>

#include "common/base/check.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/optimizer_math.h"

namespace tributary {
namespace {

// Elements that WeightedSum processes at a time, so that `out` stays in the L1
// cache while the parts are added four at a time.
constexpr int64_t kBlock = 2048;

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

template <float (*kUpdate)(const OptimizerStep&, float, float)>
TRIBUTARY_INLINE void Update0(const OptimizerStep& p, int64_t n,
                              const float* gradient, const float* weight_in,
                              float* weight_out) {
  ForEachWeight(n, gradient, weight_in, weight_out,
                [&p](float g, float w, int64_t)
                    TRIBUTARY_INLINE_LAMBDA { return kUpdate(p, g, w); });
}

template <float (*kUpdate)(const OptimizerStep&, float, float, float*)>
TRIBUTARY_INLINE void Update1(const OptimizerStep& p, int64_t n,
                              const float* gradient, const float* weight_in,
                              float* weight_out, float* const* state) {
  float* s0 = state[0];
  ForEachWeight(n, gradient, weight_in, weight_out,
                [&p, s0](float g, float w, int64_t i) TRIBUTARY_INLINE_LAMBDA {
                  return kUpdate(p, g, w, s0 + i);
                });
}

template <float (*kUpdate)(const OptimizerStep&, float, float, float*, float*)>
TRIBUTARY_INLINE void Update2(const OptimizerStep& p, int64_t n,
                              const float* gradient, const float* weight_in,
                              float* weight_out, float* const* state) {
  float* s0 = state[0];
  float* s1 = state[1];
  ForEachWeight(
      n, gradient, weight_in, weight_out,
      [&p, s0, s1](float g, float w, int64_t i)
          TRIBUTARY_INLINE_LAMBDA { return kUpdate(p, g, w, s0 + i, s1 + i); });
}

template <float (*kUpdate)(const OptimizerStep&, float, float, float*, float*,
                           float*)>
TRIBUTARY_INLINE void Update3(const OptimizerStep& p, int64_t n,
                              const float* gradient, const float* weight_in,
                              float* weight_out, float* const* state) {
  float* s0 = state[0];
  float* s1 = state[1];
  float* s2 = state[2];
  ForEachWeight(n, gradient, weight_in, weight_out,
                [&p, s0, s1, s2](float g, float w, int64_t i)
                    TRIBUTARY_INLINE_LAMBDA {
                      return kUpdate(p, g, w, s0 + i, s1 + i, s2 + i);
                    });
}

// Takes p by value, so that stores to the arrays cannot alias it.
TRIBUTARY_CLONES void UpdateRange(OptimizerStep p, int64_t n, const float* g,
                                  const float* in, float* out,
                                  float* const* state) {
  switch (p.rule) {
    case UpdateRule::kSgd:
      return Update0<SgdUpdate>(p, n, g, in, out);
    case UpdateRule::kMomentum:
      return Update1<MomentumUpdate>(p, n, g, in, out, state);
    case UpdateRule::kNesterov:
      return Update1<NesterovUpdate>(p, n, g, in, out, state);
    case UpdateRule::kAdam:
      return Update2<AdamUpdate>(p, n, g, in, out, state);
    case UpdateRule::kAmsgrad:
      return Update3<AmsgradUpdate>(p, n, g, in, out, state);
    case UpdateRule::kAdagrad:
      return Update1<AdagradUpdate>(p, n, g, in, out, state);
    case UpdateRule::kRmsprop:
      return Update1<RmspropUpdate>(p, n, g, in, out, state);
    case UpdateRule::kRmspropMomentum:
      return Update2<RmspropMomentumUpdate>(p, n, g, in, out, state);
    case UpdateRule::kRmspropCentered:
      return Update2<RmspropCenteredUpdate>(p, n, g, in, out, state);
    case UpdateRule::kRmspropCenteredMomentum:
      return Update3<RmspropCenteredMomentumUpdate>(p, n, g, in, out, state);
    case UpdateRule::kFtrl:
      return Update2<FtrlUpdate>(p, n, g, in, out, state);
    case UpdateRule::kLamb:  // out is the direction
      return Update2<LambElement>(p, n, g, in, out, state);
  }
}

// out = w[0] p[0] + w[1] p[1] + ..., in order. With kAdd, the sum starts from
// out.
template <int kCount, bool kAdd>
TRIBUTARY_INLINE void SumParts(int64_t n, const UnalignedFloat* const* parts,
                               const float* weights, float* out) {
  const UnalignedFloat* p[kCount];
  float w[kCount];
  for (int r = 0; r < kCount; ++r) {
    p[r] = parts[r];
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
TRIBUTARY_INLINE void SumUpToFour(int64_t n, int count,
                                  const UnalignedFloat* const* parts,
                                  const float* weights, float* out) {
  switch (count) {
    case 1:
      return SumParts<1, kAdd>(n, parts, weights, out);
    case 2:
      return SumParts<2, kAdd>(n, parts, weights, out);
    case 3:
      return SumParts<3, kAdd>(n, parts, weights, out);
    default:
      return SumParts<4, kAdd>(n, parts, weights, out);
  }
}

// Sums one block, which starts at `offset` in every part.
TRIBUTARY_CLONES void SumBlock(int64_t offset, int64_t n, int count,
                               const float* const* parts, const float* weights,
                               float* out) {
  for (int first = 0; first < count; first += 4) {
    const int group = std::min(4, count - first);
    const UnalignedFloat* p[4] = {};
    for (int r = 0; r < group; ++r) p[r] = parts[first + r] + offset;
    if (first == 0) {
      SumUpToFour<false>(n, group, p, weights, out);
    } else {
      SumUpToFour<true>(n, group, p, weights + first, out);
    }
  }
}

TRIBUTARY_CLONES void Apply(int64_t n, float rate, const float* direction,
                            const float* weight_in, float* weight_out) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    weight_out[i] = weight_in[i] - rate * direction[i];
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
  TRIBUTARY_CHECK(step.rule != UpdateRule::kLamb);
  UpdateRange(step, n, gradient, weight_in, weight_out, state);
}

void CpuOps::LambDirection(const OptimizerStep& step, int64_t n,
                           const float* gradient, const float* weight,
                           float* direction, float* const* state) {
  TRIBUTARY_CHECK(step.rule == UpdateRule::kLamb);
  UpdateRange(step, n, gradient, weight, direction, state);
}

void CpuOps::ApplyDirection(int64_t n, float rate, const float* direction,
                            const float* weight_in, float* weight_out) {
  Apply(n, rate, direction, weight_in, weight_out);
}

void CpuOps::GrainSquares(int64_t n, int64_t grain, const float* x,
                          double* out) {
  for (int64_t first = 0; first < n; first += grain) {
    *out++ = SumOfSquares(std::min(grain, n - first), x + first);
  }
}

}  // namespace tributary
