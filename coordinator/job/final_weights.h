// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/parameter_spec.h"

namespace tributary {

struct FinalWeights {
  ParameterSpecs parameters;
  std::vector<std::vector<float>> tensors;  // C order, as in `parameters`
  int64_t step = 0;                         // of the job
};

}  // namespace tributary
