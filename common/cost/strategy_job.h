#pragma once

#include "absl/status/statusor.h"
#include "common/cost/cost_inputs.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// A resolved job with another strategy and so many workers, as `tributary
// train` would run it: the batch of all workers stays, and so do the settings
// of its own strategy where they mean anything to the new one. InvalidArgument:
// it would refuse the job, and why.
absl::StatusOr<v1::JobSpec> JobWithStrategy(const v1::JobSpec& job,
                                            const StrategyShape& shape,
                                            int workers);

}  // namespace tributary
