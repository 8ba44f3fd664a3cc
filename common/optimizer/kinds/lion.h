// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/optimizer/kinds/adam.h"

namespace tributary {

// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms",
// Algorithm 2): moves every weight by the learning rate, in the direction of
// the sign of an average of the gradients. The sign of 0 is 0.
struct LionRule {
  static constexpr std::array kStates = {"exp_avg"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* m) {
    const float g = gradient * p.gradient_scale;
    const float mean = p.beta1 * *m + p.weight1 * g;
    *m = p.beta2 * *m + p.weight2 * g;
    const float sign =
        (mean > 0.0f ? 1.0f : 0.0f) - (mean < 0.0f ? 1.0f : 0.0f);
    return weight * p.weight_scale - p.rate * sign;
  }
};

struct Lion : KindBase {
  using Options = OptimizerOptions;
  static constexpr const char* kName = "lion";
  static constexpr std::array kFields = {
      OptimizerField{"learning_rate", &Options::learning_rate, "1e-4",
                     kPositive},
      OptimizerField{"beta1", &Options::beta1, "0.9", kBelowOne},
      OptimizerField{"beta2", &Options::beta2, "0.99", kBelowOne}, kWeightDecay,
      kDecayOn};

  using Rules = RuleList<LionRule>;
  static void Prepare(const Options& o, int64_t /*step*/, double learning_rate,
                      OptimizerStep* p) {
    Adam::PrepareAverages(o, p);
    DecoupleDecay(o, learning_rate, p);
    p->rate = static_cast<float>(learning_rate);
  }
};

}  // namespace tributary
