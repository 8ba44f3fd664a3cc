// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/partition_plan.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

// A snapshot of a block after `steps` steps, for a checkpoint. The weights may
// be held as long as needed; the state must be copied before the call returns.
struct BlockCut {
  int64_t steps = 0;
  int64_t skipped_steps = 0;  // of these; the same in all blocks
  const Block* block = nullptr;
  SharedBuffer weights;
  std::vector<const float*> state;  // in the order of the state names
};

}  // namespace tributary
