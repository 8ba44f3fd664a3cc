// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/core/checkpoint_ledger.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// The members that write a file of each checkpoint under this plan. With
// servers: the servers that hold blocks, and all ranks if they write their
// residuals. Without servers: the ranks of one replica, or all ranks if each
// holds its own part of the optimizer's state.
std::vector<CheckpointWriter> CheckpointHolders(const v1::JobSpec& job,
                                                const v1::Plan& plan);

// The rank that sends this parameter of the plan at the end of a job that has
// no servers.
uint32_t FirstHolderOf(const v1::Plan& plan, size_t parameter);

}  // namespace tributary
