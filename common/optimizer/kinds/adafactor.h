// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "common/optimizer/kind_base.h"

namespace tributary {

// Adafactor (Shazeer & Stern 2018), as torch.optim.Adafactor arranges it. The
// average of the squared gradients of a matrix is kept as the averages of its
// rows and columns (common/update/factored_moments.h), which take next to no
// memory. This rule makes the direction of tensors with one dimension, whose
// average is kept for each element.
struct AdafactorRule {
  static constexpr std::array kStates = {"row_var", "col_var"};
  TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
                                            float gradient, float /*weight*/,
                                            float* variance, float* /*none*/) {
    const float g = gradient * p.gradient_scale;
    *variance = *variance + p.weight2 * (g * g - *variance);
    return AdafactorDirection(p, g, *variance);
  }
};

struct Adafactor : KindBase {
  using Options = OptimizerOptions;
  static constexpr const char* kName = "adafactor";
  static constexpr std::array kFields = {
      OptimizerField{"learning_rate", &Options::learning_rate, "1e-2",
                     kPositive},
      OptimizerField{"beta2_decay",
                     &Options::beta2_decay,
                     "-0.8",
                     {.max = 0, .below_max = true}},
      OptimizerField{"epsilon1", &Options::epsilon, "1.1920928955078125e-07",
                     kPositive},
      OptimizerField{"epsilon2", &Options::epsilon2, "1e-3", kNotNegative},
      OptimizerField{"clip_threshold", &Options::clip_threshold, "1",
                     kPositive},
      kWeightDecay,
      kDecayOn};

  using Rules = RuleList<AdafactorRule>;
  static constexpr bool kFactored = true;
  static void Prepare(const Options& o, int64_t step, double learning_rate,
                      OptimizerStep* p) {
    p->weight2 =
        static_cast<float>(std::pow(static_cast<double>(step), o.beta2_decay));
    p->epsilon = static_cast<float>(o.epsilon);
    DecoupleDecay(o, learning_rate, p);
  }

  // The step is relative to the size of the weights, and shorter when the
  // direction's root mean square exceeds the threshold.
  static constexpr bool kMakesDirection = true;
  static double DirectionRate(const Options& o, const DirectionSize& size) {
    const double n = static_cast<double>(size.elements);
    const double rho = std::min(size.learning_rate,
                                1 / std::sqrt(static_cast<double>(size.step)));
    const double alpha =
        std::max(o.epsilon2, size.weight_norm / std::sqrt(n)) * rho;
    return alpha / std::max(1.0, size.direction_norm /
                                     (std::sqrt(n) * o.clip_threshold));
  }
};

}  // namespace tributary
