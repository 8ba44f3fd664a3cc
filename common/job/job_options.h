#pragma once

#include <cstdint>

#include "common/optimizer_options.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The optimizer of a resolved job (ReadJobFile) as plain values.
OptimizerOptions OptimizerOptionsOf(const v1::OptimizerSpec& spec);

// The optimizer that runs on the servers: the job's, but with local_sgd the
// outer one.
OptimizerOptions ServerOptimizerOptionsOf(const v1::JobSpec& job);

// Optimizer steps of the workers for each that their servers gather: 1, but
// with local_sgd the period.
int64_t StepsAnUpdate(const v1::JobSpec& job);

// The version of the servers' weights once every worker has finished `steps`
// steps.
int64_t VersionAfter(const v1::JobSpec& job, int64_t steps);

}  // namespace tributary
