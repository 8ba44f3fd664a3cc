// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/parameter_spec.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// A parameter that starts from the seeded initializer.
inline constexpr int kFromSeed = -1;

// Decides where each parameter of a model with model.initialize_from starts.
// Returns, for each of ModelParameters, the index of its tensor among the
// file's `tensors`, or kFromSeed. A parameter follows the first of
// model.initialize_rules that names it; without a rule it takes the tensor of
// its name and shape. Several parameters may start from one tensor. A pure
// function, so that the check before the start and the worker that reads the
// values decide alike.
//
// InvalidArgument at its place in the job file: a parameter has no tensor, or
// one of another shape; a tensor of the file is not taken by a parameter, not
// in model.initialize_unused and not replaced by a fresh parameter of its name;
// or a rule names nothing.
absl::StatusOr<std::vector<int>> MatchInitialTensors(
    const Places& places, const v1::ModelSpec& model,
    const ParameterSpecs& tensors);

}  // namespace tributary
