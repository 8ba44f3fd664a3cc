// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/parameter_spec.h"

namespace tributary {

// The parameters of a trained object. Their weights and gradients lie in the
// memory of one device, at addresses that do not change.
class ParameterMemory {
 public:
  virtual ~ParameterMemory() = default;
  virtual const ParameterSpecs& parameters() const = 0;
  // Parameter i's values, in C order.
  virtual float* weight(int i) = 0;
  virtual float* gradient(int i) = 0;
};

}  // namespace tributary
