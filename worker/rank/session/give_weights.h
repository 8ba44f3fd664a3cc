// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/parameter_memory.h"
#include "common/member/member.h"
#include "kernels/ops.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Without servers, sends the job's final weights (after `step`) to the
// coordinator: for each parameter, the first rank that holds it sends it.
// model: this rank's part, on the device of `ops`.
absl::Status GiveWeights(Member& member, ParameterMemory& model, Ops& ops,
                         const v1::Plan& plan, int64_t step);

}  // namespace tributary
