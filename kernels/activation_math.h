// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/scalar_math.h"

namespace tributary {

// One element of each activation y = f(x) and of its backward pass
// dx = dy f'(x), which may use the forward pass's x and y.

TRIBUTARY_HOST_DEVICE inline float Relu(float x) {
  return x < 0.0f ? 0.0f : x;  // a NaN stays visible
}
// The derivative at 0 is 0, as in PyTorch.
TRIBUTARY_HOST_DEVICE inline float ReluBackward(float /*x*/, float y,
                                                float dy) {
  return y > 0.0f ? dy : 0.0f;
}

// x Phi(x) (Hendrycks & Gimpel 2016).
TRIBUTARY_HOST_DEVICE inline float GeluErf(float x) {
  return x * NormalCdf(x, Exp(-0.5f * x * x));
}
TRIBUTARY_HOST_DEVICE inline float GeluErfBackward(float x, float /*y*/,
                                                   float dy) {
  const float bell = Exp(-0.5f * x * x);
  return dy * (NormalCdf(x, bell) + x * (0.398942280f * bell));
}

// As GeluErf, with Phi(x) = (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
TRIBUTARY_HOST_DEVICE inline float GeluTanhInner(float x) {
  return Tanh(0.797884561f * (x + 0.044715f * x * x * x));
}
TRIBUTARY_HOST_DEVICE inline float GeluTanh(float x) {
  return 0.5f * x * (1.0f + GeluTanhInner(x));
}
TRIBUTARY_HOST_DEVICE inline float GeluTanhBackward(float x, float /*y*/,
                                                    float dy) {
  const float t = GeluTanhInner(x);
  const float slope = 0.797884561f * (1.0f + 0.134145f * x * x);
  return dy * 0.5f * ((1.0f + t) + x * (1.0f - t * t) * slope);
}

TRIBUTARY_HOST_DEVICE inline float SigmoidBackward(float /*x*/, float y,
                                                   float dy) {
  return dy * y * (1.0f - y);
}

TRIBUTARY_HOST_DEVICE inline float TanhBackward(float /*x*/, float y,
                                                float dy) {
  return dy * (1.0f - y * y);
}

TRIBUTARY_HOST_DEVICE inline float Silu(float x) { return x * Sigmoid(x); }
TRIBUTARY_HOST_DEVICE inline float SiluBackward(float x, float /*y*/,
                                                float dy) {
  const float s = Sigmoid(x);
  return dy * s * (1.0f + x * (1.0f - s));
}

}  // namespace tributary
