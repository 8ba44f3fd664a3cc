// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/parameter_spec.h"
#include "common/layers/model_costs.h"
#include "common/layers/tensor_cuts.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Returns the first layer of every stage, then the number of layers. Cuts by
// the FLOPs of both passes (CutStages), so that every process cuts alike. Pairs
// of layers that tensor ranks share stay together. InvalidArgument: the model
// can be cut into fewer parts than there are stages.
absl::StatusOr<std::vector<int>> StageBounds(const ModelCosts& costs,
                                             const TensorCuts& cuts,
                                             int stages);
// The same for a resolved job. Also errors as CostsOfModel.
absl::StatusOr<std::vector<int>> StageBounds(const v1::JobSpec& job,
                                             const Shape& sample_shape);

// The parameters of the model as the mesh cuts and places them, which the plan
// of the job lists. They depend only on the arguments.
absl::StatusOr<ParameterSpecs> PlannedParameters(const v1::JobSpec& job,
                                                 const Shape& sample_shape);

}  // namespace tributary
