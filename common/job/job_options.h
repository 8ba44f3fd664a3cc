#pragma once

#include <cstdint>

#include "common/base/step_count.h"
#include "common/base/strategy.h"
#include "common/job/optimizer_spec.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The strategy of a resolved job.
Strategy StrategyOf(const v1::JobSpec& job);

// Whether tensor-parallel ranks compute the loss on partitioned logits.
bool CutsLogits(const v1::JobSpec& job);

// The optimizer that runs on the servers: the outer optimizer with local_sgd,
// otherwise the job's.
OptimizerOptions ServerOptimizerOptionsOf(const v1::JobSpec& job);

// How the workers' steps count in the versions of the servers' weights.
StepCount StepCountOf(const v1::JobSpec& job);

}  // namespace tributary
