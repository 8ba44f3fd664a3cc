// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/device_mesh.h"
#include "common/base/parameter_spec.h"

namespace tributary {

// A model's parameters, cut by the workers' mesh or whole. In the planned list
// the slices of a parameter follow each other, in the parameter's place.

// The whole parameters, in order.
ParameterSpecs WholeParameters(const ParameterSpecs& planned);

// `tensors` and CutWhole's result have one tensor for each planned parameter;
// `whole` and AssembleWhole's result one for each of WholeParameters(planned).
using Tensors = std::vector<std::vector<float>>;
Tensors AssembleWhole(const ParameterSpecs& planned, Tensors tensors);
Tensors CutWhole(const ParameterSpecs& planned, const Tensors& whole);

// The index in the planned list of each parameter of a worker's model, which is
// named as in the whole model. FailedPrecondition: the plan does not give the
// rank exactly these parameters with these shapes.
absl::StatusOr<std::vector<int>> PlacesInPlan(const ParameterSpecs& own,
                                              const ParameterSpecs& planned,
                                              const DeviceMesh& mesh, int rank);

// The lowest rank that holds a parameter with these holders: it speaks for all.
int FirstHolder(const Holders& holders, const DeviceMesh& mesh);

}  // namespace tributary
