// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/optimizer/kind_base.h"

namespace tributary {

struct SgdRule : NoState {
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight) {
    return weight * p.weight_scale -
           p.rate * DecayedGradient(p, gradient, weight);
  }
};

// As torch.optim.SGD: the buffer holds a sum of gradients, not an average. At
// the first step the buffer becomes the gradient, whatever the dampening.
struct MomentumRule {
  static constexpr std::array kStates = {"momentum_buffer"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* buffer) {
    const float g = DecayedGradient(p, gradient, weight);
    *buffer = p.beta1 * *buffer + p.weight1 * g;
    return weight - p.rate * *buffer;
  }
};

struct NesterovRule : MomentumRule {
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* buffer) {
    const float g = DecayedGradient(p, gradient, weight);
    *buffer = p.beta1 * *buffer + p.weight1 * g;
    return weight - p.rate * (g + p.beta1 * *buffer);
  }
};

struct Sgd : KindBase {
  using Options = OptimizerOptions;
  static constexpr const char* kName = "sgd";
  static constexpr std::array kFields = {
      OptimizerField{"learning_rate", &Options::learning_rate, nullptr,
                     kPositive, /*required=*/true},
      OptimizerField{"momentum", &Options::momentum, nullptr, kBelowOne},
      OptimizerField{"nesterov", &Options::nesterov},
      kWeightDecay,
      OptimizerField{"dampening", &Options::dampening, nullptr, kUnit},
      kDecayOn};

  using Rules = RuleList<SgdRule, MomentumRule, NesterovRule>;
  static int Variant(const Options& o) {
    return o.momentum == 0 ? 0 : o.nesterov ? 2 : 1;
  }
  static OptimizerFault Check(const Options& o) {
    if (!o.nesterov || (o.momentum > 0 && o.dampening == 0)) return {};
    return {"nesterov", "wants momentum above 0 and dampening 0"};
  }
  static void Prepare(const Options& o, int64_t step, double learning_rate,
                      OptimizerStep* p) {
    p->rate = static_cast<float>(learning_rate);
    p->beta1 = static_cast<float>(o.momentum);
    p->weight1 = step == 1 ? 1.0f : static_cast<float>(1 - o.dampening);
  }
};

}  // namespace tributary
