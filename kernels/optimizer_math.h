#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace tributary {

// The update rules; Optimizer::Prepare selects one. AdamW is kAdam with its
// decay in weight_scale.
enum class UpdateRule : int32_t {
  kSgd,
  kMomentum,
  kNesterov,
  kAdam,
  kAmsgrad,
  kAdagrad,
  kRmsprop,
  kRmspropMomentum,
  kRmspropCentered,
  kRmspropCenteredMomentum,
  kFtrl,
  kLamb,  // in two phases: LambDirection, ApplyDirection
};

inline constexpr int kMaxOptimizerStates = 3;

// The scalars of one step. Optimizer::Prepare computes them in double and then
// rounds them, as PyTorch does. Each rule reads only the fields that it needs.
struct OptimizerStep {
  UpdateRule rule = UpdateRule::kSgd;
  float gradient_scale = 1;  // the clip coefficient; multiplied in first
  float weight_decay = 0;    // g += weight_decay w
  float rate = 0;            // Adam: learning rate / (1 - beta1^t)
  float weight_scale = 1;    // AdamW: 1 - learning rate * weight decay
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

// Each function takes the step, the gradient (summed and averaged), the weight
// and the rule's states, updates the states and returns the new weight.

TRIBUTARY_HOST_DEVICE inline float DecayedGradient(const OptimizerStep& p,
                                                   float gradient,
                                                   float weight) {
  return gradient * p.gradient_scale + p.weight_decay * weight;
}

TRIBUTARY_HOST_DEVICE inline float SgdUpdate(const OptimizerStep& p,
                                             float gradient, float weight) {
  return weight - p.rate * DecayedGradient(p, gradient, weight);
}

// As torch.optim.SGD: the buffer holds a sum of gradients, not an average. At
// the first step the buffer becomes the gradient, whatever the dampening.
TRIBUTARY_HOST_DEVICE inline float MomentumUpdate(const OptimizerStep& p,
                                                  float gradient, float weight,
                                                  float* buffer) {
  const float g = DecayedGradient(p, gradient, weight);
  *buffer = p.beta1 * *buffer + p.weight1 * g;
  return weight - p.rate * *buffer;
}

TRIBUTARY_HOST_DEVICE inline float NesterovUpdate(const OptimizerStep& p,
                                                  float gradient, float weight,
                                                  float* buffer) {
  const float g = DecayedGradient(p, gradient, weight);
  *buffer = p.beta1 * *buffer + p.weight1 * g;
  return weight - p.rate * (g + p.beta1 * *buffer);
}

// Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019), as
// torch.optim.Adam and AdamW arrange them.
TRIBUTARY_HOST_DEVICE inline float AdamUpdate(const OptimizerStep& p,
                                              float gradient, float weight,
                                              float* m, float* v) {
  const float g = DecayedGradient(p, gradient, weight);
  *m = p.beta1 * *m + p.weight1 * g;
  *v = p.beta2 * *v + p.weight2 * g * g;
  const float denominator = sqrtf(*v) * p.correction2 + p.epsilon;
  return weight * p.weight_scale - p.rate * *m / denominator;
}

// AMSGrad (Reddi, Kale, Kumar 2018): divides by the largest average of squares
// so far.
TRIBUTARY_HOST_DEVICE inline float AmsgradUpdate(const OptimizerStep& p,
                                                 float gradient, float weight,
                                                 float* m, float* v,
                                                 float* max_v) {
  const float g = DecayedGradient(p, gradient, weight);
  *m = p.beta1 * *m + p.weight1 * g;
  *v = p.beta2 * *v + p.weight2 * g * g;
  *max_v = *max_v > *v ? *max_v : *v;
  const float denominator = sqrtf(*max_v) * p.correction2 + p.epsilon;
  return weight * p.weight_scale - p.rate * *m / denominator;
}

// Adagrad (Duchi, Hazan, Singer 2011).
TRIBUTARY_HOST_DEVICE inline float AdagradUpdate(const OptimizerStep& p,
                                                 float gradient, float weight,
                                                 float* sum) {
  const float g = DecayedGradient(p, gradient, weight);
  *sum = *sum + g * g;
  return weight - p.rate * g / (sqrtf(*sum) + p.epsilon);
}

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

TRIBUTARY_HOST_DEVICE inline float RmspropUpdate(const OptimizerStep& p,
                                                 float gradient, float weight,
                                                 float* square_avg) {
  const float g = DecayedGradient(p, gradient, weight);
  return weight - p.rate * RmspropRatio(p, g, square_avg);
}

TRIBUTARY_HOST_DEVICE inline float RmspropMomentumUpdate(const OptimizerStep& p,
                                                         float gradient,
                                                         float weight,
                                                         float* square_avg,
                                                         float* buffer) {
  const float g = DecayedGradient(p, gradient, weight);
  *buffer = p.beta1 * *buffer + RmspropRatio(p, g, square_avg);
  return weight - p.rate * *buffer;
}

TRIBUTARY_HOST_DEVICE inline float RmspropCenteredUpdate(const OptimizerStep& p,
                                                         float gradient,
                                                         float weight,
                                                         float* square_avg,
                                                         float* grad_avg) {
  const float g = DecayedGradient(p, gradient, weight);
  return weight - p.rate * RmspropCenteredRatio(p, g, square_avg, grad_avg);
}

TRIBUTARY_HOST_DEVICE inline float RmspropCenteredMomentumUpdate(
    const OptimizerStep& p, float gradient, float weight, float* square_avg,
    float* buffer, float* grad_avg) {
  const float g = DecayedGradient(p, gradient, weight);
  *buffer =
      p.beta1 * *buffer + RmspropCenteredRatio(p, g, square_avg, grad_avg);
  return weight - p.rate * *buffer;
}

// FTRL-proximal (McMahan et al., KDD 2013, Algorithm 1), per coordinate. sqrt(n
// + g^2) - sqrt(n) is computed as g^2 / (sqrt(n + g^2) + sqrt(n)), which avoids
// cancellation.
TRIBUTARY_HOST_DEVICE inline float FtrlUpdate(const OptimizerStep& p,
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

// LAMB (You et al. 2020, Algorithm 2) before the trust ratio: the direction of
// one weight.
TRIBUTARY_HOST_DEVICE inline float LambElement(const OptimizerStep& p,
                                               float gradient, float weight,
                                               float* m, float* v) {
  const float g = gradient * p.gradient_scale;
  *m = p.beta1 * *m + p.weight1 * g;
  *v = p.beta2 * *v + p.weight2 * g * g;
  const float ratio =
      *m * p.correction1 / (sqrtf(*v) * p.correction2 + p.epsilon);
  return ratio + p.weight_decay * weight;
}

}  // namespace tributary
