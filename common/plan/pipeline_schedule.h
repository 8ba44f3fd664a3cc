// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/base/strategy.h"

namespace tributary {

struct PipelineTask {
  enum class Kind { kForward, kBackward };
  Kind kind = Kind::kForward;
  int micro_batch = 0;
};

// The tasks of stage `stage` of `stages`, in their order. Each pass needs the
// same micro-batch's forward pass of the stage before or backward pass of the
// stage after.
std::vector<PipelineTask> MakePipelineTasks(PipelineSchedule schedule,
                                            int stage, int stages,
                                            int micro_batches);

// The most micro-batches at a time between forward and backward on a stage.
int ActivationsInFlight(PipelineSchedule schedule, int stage, int stages,
                        int micro_batches);

}  // namespace tributary
