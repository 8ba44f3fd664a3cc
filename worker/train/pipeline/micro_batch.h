// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "worker/train/data/batches/batch.h"
#include "worker/train/model/layer.h"
#include "worker/train/model/loss.h"

namespace tributary {

// A part of a batch, in the memory of the batch.
struct MicroBatch {
  int64_t rows = 0;
  ForwardContext context;
  const float* features = nullptr;  // [rows, sample]
  LossTargets targets;
};

// Splits a training batch into at most `count` parts, as even as possible and
// none empty. The parts point into the batch. step_samples: the worker's
// samples in the whole step, including the batch's; 0: only the batch's.
std::vector<MicroBatch> CutBatch(const Batch& batch, int count,
                                 int64_t step_samples = 0);

}  // namespace tributary
