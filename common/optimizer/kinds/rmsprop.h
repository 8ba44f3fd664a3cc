// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "common/optimizer/kind_base.h"

namespace tributary {

// RMSprop (Tieleman & Hinton 2012; centered: Graves 2013): the gradient divided
// by the root of its average of squares.
TRIBUTARY_HOST_DEVICE inline float RmspropRatio(const OptimizerStep& p, float g,
                                                float* square_avg) {
  *square_avg = p.beta2 * *square_avg + p.weight2 * g * g;
  return g / (sqrtf(*square_avg) + p.epsilon);
}

TRIBUTARY_HOST_DEVICE inline float RmspropCenteredRatio(const OptimizerStep& p,
                                                        float g,
                                                        float* square_avg,
                                                        float* grad_avg) {
  *square_avg = p.beta2 * *square_avg + p.weight2 * g * g;
  *grad_avg = p.beta2 * *grad_avg + p.weight2 * g;
  const float variance = *square_avg - *grad_avg * *grad_avg;
  // Rounding can make a variance of 0 negative.
  return g / (sqrtf(variance < 0.0f ? 0.0f : variance) + p.epsilon);
}

struct RmspropRule {
  static constexpr std::array kStates = {"square_avg"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* square_avg) {
    const float g = DecayedGradient(p, gradient, weight);
    return weight - p.rate * RmspropRatio(p, g, square_avg);
  }
};

struct RmspropMomentumRule {
  static constexpr std::array kStates = {"square_avg", "momentum_buffer"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* square_avg, float* buffer) {
    const float g = DecayedGradient(p, gradient, weight);
    *buffer = p.beta1 * *buffer + RmspropRatio(p, g, square_avg);
    return weight - p.rate * *buffer;
  }
};

struct RmspropCenteredRule {
  static constexpr std::array kStates = {"square_avg", "grad_avg"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* square_avg,
                                            float* grad_avg) {
    const float g = DecayedGradient(p, gradient, weight);
    return weight - p.rate * RmspropCenteredRatio(p, g, square_avg, grad_avg);
  }
};

struct RmspropCenteredMomentumRule {
  static constexpr std::array kStates = {"square_avg", "momentum_buffer",
                                         "grad_avg"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* square_avg, float* buffer,
                                            float* grad_avg) {
    const float g = DecayedGradient(p, gradient, weight);
    *buffer =
        p.beta1 * *buffer + RmspropCenteredRatio(p, g, square_avg, grad_avg);
    return weight - p.rate * *buffer;
  }
};

struct Rmsprop : KindBase {
  using Options = OptimizerOptions;
  static constexpr const char* kName = "rmsprop";
  static constexpr std::array kFields = {
      OptimizerField{"learning_rate", &Options::learning_rate, "1e-2",
                     kPositive},
      OptimizerField{"alpha", &Options::alpha, "0.99", kBelowOne},
      OptimizerField{"epsilon", &Options::epsilon, "1e-8", kNotNegative},
      OptimizerField{"momentum", &Options::momentum, nullptr, kBelowOne},
      OptimizerField{"centered", &Options::centered},
      kWeightDecay,
      kDecayOn};

  using Rules = RuleList<RmspropRule, RmspropMomentumRule, RmspropCenteredRule,
                         RmspropCenteredMomentumRule>;
  static int Variant(const Options& o) {
    return (o.momentum > 0 ? 1 : 0) + (o.centered ? 2 : 0);
  }
  static void Prepare(const Options& o, int64_t /*step*/, double learning_rate,
                      OptimizerStep* p) {
    p->rate = static_cast<float>(learning_rate);
    p->beta1 = static_cast<float>(o.momentum);
    p->beta2 = static_cast<float>(o.alpha);
    p->weight2 = static_cast<float>(1 - o.alpha);
    p->epsilon = static_cast<float>(o.epsilon);
  }
};

}  // namespace tributary
