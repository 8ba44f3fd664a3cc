// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/base/host_device.h"

namespace tributary {

// exp, tanh, the normal distribution and the logistic function in float32.
// Library versions differ between machines and are not vectorized; these give
// the same bits everywhere. The polynomials are minimax fits (Remez) of the
// functions that the comments name.

// Converts between a float and its bits. std::bit_cast is host-only.
TRIBUTARY_HOST_DEVICE inline uint32_t FloatBits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}
TRIBUTARY_HOST_DEVICE inline float BitsFloat(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// e^x, to within 2 units in the last place. 0 below -104, infinity above 89.
TRIBUTARY_HOST_DEVICE inline float Exp(float x) {
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  // n = x / ln 2 rounded: adding 1.5 * 2^23 drops the fraction.
  constexpr float kRound = 12582912.0f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  // r = x - n ln 2. ln 2 is split in two, so that n times its first part is
  // exact.
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  // (e^r - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2].
  float p = 0.00139504483f;
  p = p * r + 0.00836888608f;
  p = p * r + 0.0416662072f;
  p = p * r + 0.16666519f;
  p = p * r + 0.500000009f;
  p = (p * (r * r) + r) + 1.0f;
  // Multiplies by 2^n in two factors, so that subnormal results are correct
  // too.
  const int32_t exponent =
      static_cast<int32_t>(FloatBits(shifted) - FloatBits(kRound));
  const int32_t half = exponent >> 1;
  const uint32_t low = static_cast<uint32_t>(half) + 127u;
  const uint32_t high =
      static_cast<uint32_t>(exponent) - static_cast<uint32_t>(half) + 127u;
  return p * BitsFloat(low << 23) * BitsFloat(high << 23);
}

// 1 / (1 + e^-x).
TRIBUTARY_HOST_DEVICE inline float Sigmoid(float x) {
  return 1.0f / (1.0f + Exp(-x));
}

// tanh, to within 3 units in the last place.
TRIBUTARY_HOST_DEVICE inline float Tanh(float x) {
  const float a = fabsf(x);
  const float large = 1.0f - 2.0f / (Exp(2.0f * a) + 1.0f);
  // (tanh(a) / a - 1) / a^2 in s = a^2, a up to 0.625.
  const float s = a * a;
  float p = 0.00216799607f;
  p = p * s - 0.00820753767f;
  p = p * s + 0.0217143549f;
  p = p * s - 0.0539496188f;
  p = p * s + 0.133332328f;
  p = p * s - 0.333333317f;
  const float small = a + a * s * p;
  return copysignf(a < 0.625f ? small : large, x);
}

// Phi(x), the normal distribution function, to within 2.5e-7, and from -5 to 0
// to within a relative error of 1e-6. bell: Exp(-x^2 / 2), which the caller
// also uses for the density.
TRIBUTARY_HOST_DEVICE inline float NormalCdf(float x, float bell) {
  // Phi(-a) e^(a^2 / 2) / t in t = 1 / (1 + 0.31 a), a from 0 to 15.
  const float t = 1.0f / (1.0f + 0.31f * fabsf(x));
  float p = 0.03589138f;
  p = p * t - 0.14182203f;
  p = p * t + 0.15546347f;
  p = p * t - 0.015289701f;
  p = p * t + 0.11032795f;
  p = p * t + 0.107700475f;
  p = p * t + 0.12407248f;
  p = p * t + 0.123656064f;
  const float tail = p * t * bell;
  return x < 0.0f ? tail : 1.0f - tail;
}

}  // namespace tributary
