#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "tributary/v1/parameter_service.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Whether a call is for the plan, shard and one of the blocks that a server
// serves. Unavailable: there is no plan yet (null), or the call is of a later
// one, which the caller has heard of before this server; it comes here soon.
// FailedPrecondition: another job, or a plan that is over. InvalidArgument: no
// such block here.
absl::Status CheckBlockAddress(const v1::Plan* plan, int shard,
                               size_t num_blocks,
                               const v1::BlockAddress& address);

}  // namespace tributary
