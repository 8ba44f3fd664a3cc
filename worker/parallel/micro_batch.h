#pragma once

#include <cstdint>
#include <vector>

#include "worker/data/batch.h"
#include "worker/model/layer.h"
#include "worker/model/loss.h"

namespace tributary {

// Some samples of a batch, in the memory of their owner.
struct MicroBatch {
  int64_t rows = 0;
  ForwardContext context;
  const float* features = nullptr;  // [rows, sample]
  LossTargets targets;
};

// Cuts a training batch into at most `count` parts of as even a size as may be,
// none empty. The parts point into the batch.
// step_samples: that the worker has in the step, the batch's among them; 0: no
// others.
std::vector<MicroBatch> CutBatch(const Batch& batch, int count,
                                 int64_t step_samples = 0);

}  // namespace tributary
