// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "common/optimizer/kinds/adam.h"

namespace tributary {

// LAMB (You et al. 2020, Algorithm 2) before the trust ratio: the direction of
// one weight. The states are Adam's.
struct LambRule : AdamRule {
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* m, float* v) {
    const float g = gradient * p.gradient_scale;
    *m = p.beta1 * *m + p.weight1 * g;
    *v = p.beta2 * *v + p.weight2 * g * g;
    const float ratio =
        *m * p.correction1 / (sqrtf(*v) * p.correction2 + p.epsilon);
    return ratio + p.weight_decay * weight;
  }
};

struct Lamb : KindBase {
  using Options = OptimizerOptions;
  static constexpr const char* kName = "lamb";
  static constexpr std::array kFields = {
      OptimizerField{"learning_rate", &Options::learning_rate, "1e-3",
                     kPositive},
      OptimizerField{"beta1", &Options::beta1, "0.9", kBelowOne},
      OptimizerField{"beta2", &Options::beta2, "0.999", kBelowOne},
      OptimizerField{"epsilon", &Options::epsilon, "1e-6", kNotNegative},
      kWeightDecay,
      OptimizerField{"bias_correction", &Options::bias_correction, "true"},
      OptimizerField{"clip_min", &Options::clip_min, nullptr, kNotNegative},
      OptimizerField{"clip_max", &Options::clip_max, nullptr, kNotNegative},
      kDecayOn};

  using Rules = RuleList<LambRule>;
  static OptimizerFault Check(const Options& o) {
    if (o.clip_max >= o.clip_min) return {};
    return {"clip_max", "must be at least clip_min"};
  }
  static void Prepare(const Options& o, int64_t step, double learning_rate,
                      OptimizerStep* p) {
    Adam::PrepareAverages(o, p);
    p->rate = static_cast<float>(learning_rate);
    if (!o.bias_correction) return;
    const double t = static_cast<double>(step);
    p->correction1 = static_cast<float>(1 / (1 - std::pow(o.beta1, t)));
    p->correction2 =
        static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, t)));
  }

  // The learning rate times the trust ratio phi(|w|) / |u|, which is 1 when
  // either norm is 0.
  static constexpr bool kMakesDirection = true;
  static double DirectionRate(const Options& o, const DirectionSize& size) {
    if (size.weight_norm == 0 || size.direction_norm == 0) {
      return size.learning_rate;
    }
    double phi = size.weight_norm;
    if (o.clip_min != 0 || o.clip_max != 0) {
      phi = std::min(std::max(phi, o.clip_min), o.clip_max);
    }
    return size.learning_rate * (phi / size.direction_norm);
  }
};

}  // namespace tributary
