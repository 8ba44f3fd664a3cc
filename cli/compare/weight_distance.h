// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// Returns |w - reference| / |reference| in the Euclidean norm over all elements
// of two safetensors files, summed in float64; infinite when a value is not
// finite. InvalidArgument: the files do not have the same tensors.
absl::StatusOr<double> RelativeWeightDistance(
    const std::string& weights_path, const std::string& reference_path);

}  // namespace tributary
