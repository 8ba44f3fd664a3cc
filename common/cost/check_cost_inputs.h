// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/cost/cost_inputs.h"

namespace tributary {

// Checks that PredictStep can handle the inputs. InvalidArgument names the
// number that is invalid, what was wanted and what came.
absl::Status CheckCostInputs(const CostInputs& inputs);

}  // namespace tributary
