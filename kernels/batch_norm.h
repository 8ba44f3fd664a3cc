#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace tributary {

// Batches of images [rows, channels, pixels]; of plain features pixels is 1.
struct BatchNormShape {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t pixels = 1;

  TRIBUTARY_HOST_DEVICE int64_t planes() const { return rows * channels; }
  TRIBUTARY_HOST_DEVICE int64_t size() const { return planes() * pixels; }
  // That a channel's statistics are of.
  TRIBUTARY_HOST_DEVICE int64_t values() const { return rows * pixels; }
};

// The scale of a channel from its (biased) variance.
TRIBUTARY_HOST_DEVICE inline float BatchNormScale(double variance,
                                                  float epsilon) {
  return static_cast<float>(1.0 / sqrt(variance + double{epsilon}));
}

// Of n values whose squared differences from their mean add up to `squares`; 0
// of a single one.
TRIBUTARY_HOST_DEVICE inline float UnbiasedVariance(double squares, double n) {
  return n > 1 ? static_cast<float>(squares / (n - 1)) : 0.0f;
}

// mean_g, mean_gx: means over the channel of dy and of dy xhat, where
// xhat = (x - mean) rstd.
TRIBUTARY_HOST_DEVICE inline float BatchNormGradient(float x, float mean,
                                                     float rstd, float gamma,
                                                     float dy, float mean_g,
                                                     float mean_gx) {
  const float xhat = (x - mean) * rstd;
  return gamma * rstd * ((dy - mean_g) - xhat * mean_gx);
}

}  // namespace tributary
