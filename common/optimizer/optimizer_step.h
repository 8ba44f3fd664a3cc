// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "common/base/host_device.h"

namespace tributary {

inline constexpr int kMaxOptimizerStates = 3;

// The scalars of one step. Optimizer::Prepare computes them in double and then
// rounds them, as PyTorch does. Each rule reads only the fields that it needs.
struct OptimizerStep {
  // The rule: the kind's index in OptimizerKinds, and the rule's in its Rules.
  int kind = -1;
  int variant = 0;
  bool makes_direction = false;  // Ops::OptimizerDirection, not OptimizerUpdate

  float gradient_scale = 1;  // the clip coefficient; multiplied in first
  float weight_decay = 0;    // g += weight_decay w
  float rate = 0;            // Adam: learning rate / (1 - beta1^t)
  // AdamW, Lion: 1 - learning rate * weight decay. SGD: 1. Running averages:
  // Optimizer::RunningScale.
  float weight_scale = 1;
  float epsilon = 0;
  float beta1 = 0;  // decay of the first average, or the momentum
  // Weight of the gradient in the first average: 1 - beta1. SGD: 1 - dampening,
  // but 1 at the first step.
  float weight1 = 0;
  float beta2 = 0;          // decay of the average of squares; RMSprop's alpha
  float weight2 = 0;        // 1 - beta2
  float correction1 = 1;    // LAMB: 1 / (1 - beta1^t)
  float correction2 = 1;    // Adam, LAMB: 1 / sqrt(1 - beta2^t)
  float inverse_alpha = 0;  // FTRL: 1 / learning rate
  float ftrl_beta = 0;
  float l1 = 0;
  float l2 = 0;
};

// The gradient over the root of an average of its squares, as
// torch.optim.Adafactor bounds it.
TRIBUTARY_HOST_DEVICE inline float AdafactorDirection(const OptimizerStep& p,
                                                      float gradient,
                                                      float variance) {
  const float least = p.epsilon * p.epsilon;
  return gradient / sqrtf(variance > least ? variance : least);
}

TRIBUTARY_HOST_DEVICE inline float DecayedGradient(const OptimizerStep& p,
                                                   float gradient,
                                                   float weight) {
  return gradient * p.gradient_scale + p.weight_decay * weight;
}

}  // namespace tributary
