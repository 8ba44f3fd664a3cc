// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/device_mesh.h"
#include "common/base/parameter_spec.h"

namespace tributary {

// A model's parameters as the workers' mesh cuts them, and as they are whole.
// In the planned list the slices of a parameter stand one behind the other in
// its place.

// The whole parameters, in order.
ParameterSpecs WholeParameters(const ParameterSpecs& planned);

// tensors: one for each of the planned list, and of WholeParameters(planned).
using Tensors = std::vector<std::vector<float>>;
Tensors AssembleWhole(const ParameterSpecs& planned, Tensors tensors);
Tensors CutWhole(const ParameterSpecs& planned, const Tensors& whole);

// Where each parameter of a worker's model, named as in the whole one, stands
// in the planned list. FailedPrecondition: it is not there with that shape.
absl::StatusOr<std::vector<int>> PlacesInPlan(const ParameterSpecs& own,
                                              const ParameterSpecs& planned,
                                              const DeviceMesh& mesh, int rank);

// The lowest rank that holds it: the one that speaks for all.
int FirstHolder(const Holders& holders, const DeviceMesh& mesh);

}  // namespace tributary
