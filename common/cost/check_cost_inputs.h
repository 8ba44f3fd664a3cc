#pragma once

#include "absl/status/status.h"
#include "common/cost/cost_inputs.h"

namespace tributary {

// Whether PredictStep can tell anything of them. InvalidArgument says which
// number does not fit, what is wanted and what came.
absl::Status CheckCostInputs(const CostInputs& inputs);

}  // namespace tributary
