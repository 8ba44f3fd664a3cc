// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/dropout_math.h"
#include "kernels/ops.h"

namespace tributary {

inline DropoutStep PrepareDropout(float p, const DropoutKey& key) {
  DropoutStep step;
  step.key0 = static_cast<uint32_t>(key.seed);
  step.key1 = static_cast<uint32_t>(key.seed >> 32);
  step.step = static_cast<uint32_t>(key.step);
  step.layer = static_cast<uint32_t>(key.layer);
  step.threshold =
      static_cast<uint64_t>(std::llround((1.0 - double{p}) * 4294967296.0));
  step.scale = static_cast<float>(1.0 / (1.0 - double{p}));
  return step;
}

}  // namespace tributary
