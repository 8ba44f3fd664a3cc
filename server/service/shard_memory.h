// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/host/memory/available_memory.h"
#include "common/plan/partition_plan.h"
#include "server/store/shard_training.h"

namespace tributary {

// The least memory of a shard (docs/sizing.md): the current weights, those that
// are written, and the optimizer's states. Groups may freeze parameters or
// give them another optimizer, so with groups no states are counted.
MemoryClaim ClaimOf(int shard, const PartitionPlan& partition,
                    const ShardTraining& training);

}  // namespace tributary
