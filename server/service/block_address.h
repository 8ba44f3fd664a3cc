// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "tributary/v1/parameter_service.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Checks that a call is for the plan, the shard and one of the blocks that this
// server serves. Unavailable: this server has no plan yet (null), or the call
// is for a later plan, which will reach this server soon. FailedPrecondition:
// the call is for another job or for an earlier plan. InvalidArgument: the
// call names another shard, or a block that this shard does not have.
absl::Status CheckBlockAddress(const v1::Plan* plan, int shard,
                               size_t num_blocks,
                               const v1::BlockAddress& address);

}  // namespace tributary
