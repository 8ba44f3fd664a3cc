// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/cost/cost_inputs.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// A resolved job with another strategy and number of workers, as `tributary
// train` would run it. The batch of all workers stays. Settings of the job's
// own strategy stay if they also apply to the new one. InvalidArgument:
// `tributary train` would refuse the job, with the reason.
absl::StatusOr<v1::JobSpec> JobWithStrategy(const v1::JobSpec& job,
                                            const Strategy& strategy);

}  // namespace tributary
