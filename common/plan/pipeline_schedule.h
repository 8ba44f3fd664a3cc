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

// The tasks of stage `stage` of `stages`, in their order. A forward pass needs
// the forward pass of the same micro-batch on the previous stage, a backward
// pass the one on the next stage.
std::vector<PipelineTask> MakePipelineTasks(PipelineSchedule schedule,
                                            int stage, int stages,
                                            int micro_batches);

// The most micro-batches that a stage has at a time between their forward and
// their backward pass.
int ActivationsInFlight(PipelineSchedule schedule, int stage, int stages,
                        int micro_batches);

}  // namespace tributary
