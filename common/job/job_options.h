#pragma once

#include "common/optimizer_options.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The optimizer of a resolved job (ReadJobFile) as plain values.
OptimizerOptions OptimizerOptionsOf(const v1::OptimizerSpec& spec);

}  // namespace tributary
