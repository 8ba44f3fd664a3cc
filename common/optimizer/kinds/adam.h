// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "common/optimizer/kind_base.h"

namespace tributary {

// Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019), as
// torch.optim.Adam and AdamW arrange them.
struct AdamRule {
  static constexpr std::array kStates = {"exp_avg", "exp_avg_sq"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* m, float* v) {
    const float g = DecayedGradient(p, gradient, weight);
    *m = p.beta1 * *m + p.weight1 * g;
    *v = p.beta2 * *v + p.weight2 * g * g;
    const float denominator = sqrtf(*v) * p.correction2 + p.epsilon;
    return weight * p.weight_scale - p.rate * *m / denominator;
  }
};

// AMSGrad (Reddi, Kale, Kumar 2018): divides by the largest average of squares
// so far.
struct AmsgradRule {
  static constexpr std::array kStates = {"exp_avg", "exp_avg_sq",
                                         "max_exp_avg_sq"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float weight,
                                            float* m, float* v, float* max_v) {
    const float g = DecayedGradient(p, gradient, weight);
    *m = p.beta1 * *m + p.weight1 * g;
    *v = p.beta2 * *v + p.weight2 * g * g;
    *max_v = *max_v > *v ? *max_v : *v;
    const float denominator = sqrtf(*max_v) * p.correction2 + p.epsilon;
    return weight * p.weight_scale - p.rate * *m / denominator;
  }
};

struct Adam : KindBase {
  using Options = OptimizerOptions;
  static constexpr const char* kName = "adam";
  static constexpr std::array kFields = {
      OptimizerField{"learning_rate", &Options::learning_rate, "1e-3",
                     kPositive},
      OptimizerField{"beta1", &Options::beta1, "0.9", kBelowOne},
      OptimizerField{"beta2", &Options::beta2, "0.999", kBelowOne},
      OptimizerField{"epsilon", &Options::epsilon, "1e-8", kNotNegative},
      OptimizerField{"weight_decay", &Options::weight_decay, "0", kNotNegative},
      OptimizerField{"amsgrad", &Options::amsgrad},
      kDecayOn};

  using Rules = RuleList<AdamRule, AmsgradRule>;
  static int Variant(const Options& o) { return o.amsgrad ? 1 : 0; }
  static void Prepare(const Options& o, int64_t step, double learning_rate,
                      OptimizerStep* p) {
    PrepareAverages(o, p);
    const double t = static_cast<double>(step);
    p->rate = static_cast<float>(learning_rate / (1 - std::pow(o.beta1, t)));
    p->correction2 =
        static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, t)));
  }

  static void PrepareAverages(const Options& o, OptimizerStep* p) {
    p->beta1 = static_cast<float>(o.beta1);
    p->weight1 = static_cast<float>(1 - o.beta1);
    p->beta2 = static_cast<float>(o.beta2);
    p->weight2 = static_cast<float>(1 - o.beta2);
    p->epsilon = static_cast<float>(o.epsilon);
  }
};

}  // namespace tributary
