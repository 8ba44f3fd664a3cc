// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "common/optimizer/kinds/sgd.h"

namespace tributary {

// FTRL-proximal (McMahan et al., KDD 2013, Algorithm 1), per coordinate. There
//   w = -(z - sign(z) l1) / slope, slope = (beta + sqrt(n)) / alpha + l2,
//   z += g - (slope' - slope) w for the next n, so z' = g - slope' w - sign(w)
// l1 if w is not 0. In this form z follows from the weight, and a change of
// alpha since the previous step does not by itself move the weight. z is a
// state because w = 0 says only that |z| is at most l1.
struct FtrlRule {
  static constexpr std::array kStates = {"z", "n"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* z, float* n) {
    const float g = DecayedGradient(p, gradient, weight);
    *n = *n + g * g;
    const float slope = (p.ftrl_beta + sqrtf(*n)) * p.inverse_alpha + p.l2;
    const float before =
        weight == 0.0f ? *z : -(slope * weight + copysignf(p.l1, weight));
    *z = before + g;
    const float beyond = fabsf(*z) - p.l1;
    return beyond > 0.0f ? copysignf(beyond / slope, -*z) : 0.0f;
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
  static void SetFirstState(const Options& o, int64_t n,
                            const float* /*weight*/, float* const* state) {
    std::fill_n(state[1], n, static_cast<float>(o.initial_accumulator));
  }
};

}  // namespace tributary
