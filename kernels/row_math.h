// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/host_device.h"

namespace tributary {

// One element of the row operations. The caller computes the sums over the row.

// dot: sum over the row of y dy.
TRIBUTARY_HOST_DEVICE inline float SoftmaxGradient(float y, float dy,
                                                   float dot) {
  return y * (dy - dot);
}

TRIBUTARY_HOST_DEVICE inline float LayerNormElement(float x, float mean,
                                                    float rstd, float gamma,
                                                    float beta) {
  return (x - mean) * rstd * gamma + beta;
}

// mean_g, mean_gx: means over the row of g = dy gamma and of g xhat, where
// xhat = (x - mean) rstd.
TRIBUTARY_HOST_DEVICE inline float LayerNormGradient(float x, float mean,
                                                     float rstd, float gamma,
                                                     float dy, float mean_g,
                                                     float mean_gx) {
  const float xhat = (x - mean) * rstd;
  return rstd * ((dy * gamma - mean_g) - xhat * mean_gx);
}

}  // namespace tributary
