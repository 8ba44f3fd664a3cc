// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/parameter_spec.h"

namespace tributary {

// A checksum of a step's gradient. It is equal on two ranks that computed on
// the same rows, and almost never on other ranks. Covers a few elements of each
// parameter that is trained. It is 0 when all of them are zeros, which proves
// nothing.
class GradientSample {
 public:
  static constexpr int64_t kElements = 64;  // at most, of each parameter

  // Adds a parameter's gradient. The order does not matter.
  void Add(int index, const ParameterSpec& parameter, const float* gradient);

  // Takes the sample of the gradients added since the last call.
  uint32_t Take();

 private:
  uint32_t sum_ = 0;
};

}  // namespace tributary
