// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/plan/partition_plan.h"

namespace tributary {

// Sums over whole tensors are made of sums over grains of kGrainElements, which
// are added in a fixed order, so that their bits do not depend on how the
// parameters are split (docs/decisions/grains.md).

// Values of the grains of one stretch of a parameter that begins at element
// `begin`, a multiple of kGrainElements.
struct GrainValues {
  int parameter = 0;
  int64_t begin = 0;
  int64_t num_grains = 0;
  const double* values = nullptr;  // [num_grains, values_per_grain]
};

// The sums of each value over each parameter's grains, in the order of the
// grains: [values_per_grain][num_parameters]. The stretches may come in any
// order; together they cover each parameter at most once.
std::vector<std::vector<double>> SumGrains(std::vector<GrainValues> stretches,
                                           int values_per_grain,
                                           size_t num_parameters);

}  // namespace tributary
