// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "common/base/host_device.h"

namespace tributary {

// A batch of images, [rows, channels, pixels]. Plain features have 1 pixel.
struct BatchNormShape {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t pixels = 1;

  TRIBUTARY_HOST_DEVICE int64_t planes() const { return rows * channels; }
  TRIBUTARY_HOST_DEVICE int64_t size() const { return planes() * pixels; }
  // Values that the statistics of one channel cover.
  TRIBUTARY_HOST_DEVICE int64_t values() const { return rows * pixels; }
};

// 1 / sqrt(variance + epsilon), from the channel's biased variance.
TRIBUTARY_HOST_DEVICE inline float BatchNormScale(double variance,
                                                  float epsilon) {
  return static_cast<float>(1.0 / sqrt(variance + double{epsilon}));
}

// The unbiased variance of n values, where `squares` is the sum of their
// squared differences from their mean. 0 when n is 1.
TRIBUTARY_HOST_DEVICE inline float UnbiasedVariance(double squares, double n) {
  return n > 1 ? static_cast<float>(squares / (n - 1)) : 0.0f;
}

// One element of dx. mean_g and mean_gx are the channel's means of dy and of dy
// xhat, where xhat = (x - mean) rstd.
TRIBUTARY_HOST_DEVICE inline float BatchNormGradient(float x, float mean,
                                                     float rstd, float gamma,
                                                     float dy, float mean_g,
                                                     float mean_gx) {
  const float xhat = (x - mean) * rstd;
  return gamma * rstd * ((dy - mean_g) - xhat * mean_gx);
}

}  // namespace tributary
