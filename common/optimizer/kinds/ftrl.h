// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "common/optimizer/kinds/sgd.h"

namespace tributary {

// FTRL-proximal (McMahan et al., KDD 2013, Algorithm 1), per coordinate. sqrt(n
// + g^2) - sqrt(n) is computed as g^2 / (sqrt(n + g^2) + sqrt(n)), which avoids
// cancellation.
struct FtrlRule {
  static constexpr std::array kStates = {"z", "n"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* z, float* n) {
    const float g = DecayedGradient(p, gradient, weight);
    const float square = g * g;
    const float old_root = sqrtf(*n);
    *n = *n + square;
    const float root = sqrtf(*n);
    const float roots = root + old_root;
    const float growth = square / (roots > 0.0f ? roots : 1.0f);
    *z = *z + (g - growth * p.inverse_alpha * weight);
    const float beyond = fabsf(*z) - p.l1;
    const float magnitude =
        beyond / ((p.ftrl_beta + root) * p.inverse_alpha + p.l2);
    return beyond > 0.0f ? copysignf(magnitude, -*z) : 0.0f;
  }
};

struct Ftrl : KindBase {
  using Options = OptimizerOptions;
  static constexpr const char* kName = "ftrl";
  static constexpr std::array kFields = {
      OptimizerField{"alpha", &Options::learning_rate, "0.1", kPositive},
      OptimizerField{"beta", &Options::ftrl_beta, "1", kNotNegative},
      OptimizerField{"l1", &Options::l1, nullptr, kNotNegative},
      OptimizerField{"l2", &Options::l2, nullptr, kNotNegative},
      OptimizerField{"initial_accumulator", &Options::initial_accumulator,
                     nullptr, kNotNegative}};

  using Rules = RuleList<FtrlRule, SgdRule>;
  static void Prepare(const Options& o, int64_t /*step*/, double learning_rate,
                      OptimizerStep* p) {
    // FTRL divides by the learning rate. With a rate of 0, plain SGD leaves the
    // weight unchanged.
    if (learning_rate == 0) {
      p->variant = 1;
      return;
    }
    p->inverse_alpha = static_cast<float>(1 / learning_rate);
    p->ftrl_beta = static_cast<float>(o.ftrl_beta);
    p->l1 = static_cast<float>(o.l1);
    p->l2 = static_cast<float>(o.l2);
  }
  // FTRL computes weights from z alone, so z starts at the value that yields
  // the weight.
  static void SetFirstState(const Options& o, int64_t n, const float* weight,
                            float* const* state) {
    std::fill_n(state[1], n, static_cast<float>(o.initial_accumulator));
    const double slope =
        (o.ftrl_beta + std::sqrt(o.initial_accumulator)) / o.learning_rate +
        o.l2;
    for (int64_t i = 0; i < n; ++i) {
      if (weight[i] == 0) continue;
      const double w = weight[i];
      state[0][i] = static_cast<float>(-w * slope - std::copysign(o.l1, w));
    }
  }
};

}  // namespace tributary
