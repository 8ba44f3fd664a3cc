// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "common/optimizer/kind_base.h"

namespace tributary {

// Adagrad (Duchi, Hazan, Singer 2011).
struct AdagradRule {
  static constexpr std::array kStates = {"sum"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* sum) {
    const float g = DecayedGradient(p, gradient, weight);
    *sum = *sum + g * g;
    return weight - p.rate * g / (sqrtf(*sum) + p.epsilon);
  }
};

struct Adagrad : KindBase {
  using Options = OptimizerOptions;
  static constexpr const char* kName = "adagrad";
  static constexpr std::array kFields = {
      OptimizerField{"learning_rate", &Options::learning_rate, "1e-2",
                     kPositive},
      OptimizerField{"learning_rate_decay", &Options::learning_rate_decay,
                     nullptr, kNotNegative},
      OptimizerField{"initial_accumulator", &Options::initial_accumulator,
                     nullptr, kNotNegative},
      OptimizerField{"epsilon", &Options::epsilon, "1e-10", kNotNegative},
      kWeightDecay,
      kDecayOn};

  using Rules = RuleList<AdagradRule>;
  static void Prepare(const Options& o, int64_t step, double learning_rate,
                      OptimizerStep* p) {
    const double past = static_cast<double>(step - 1);
    p->rate =
        static_cast<float>(learning_rate / (1 + past * o.learning_rate_decay));
    p->epsilon = static_cast<float>(o.epsilon);
  }
  static void SetFirstState(const Options& o, int64_t n,
                            const float* /*weight*/, float* const* state) {
    std::fill_n(state[0], n, static_cast<float>(o.initial_accumulator));
  }
};

}  // namespace tributary
