// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/chunk_fold.h"
#include "common/optimizer/optimizer_step.h"

namespace tributary {

// Computes, in one pass on the host over n elements, a sum and the optimizer
// step that follows, with the bits of Ops::WeightedSum and then
// Ops::OptimizerUpdate. The sum stays in registers and in the first-level
// cache, and all arrays are read side by side from their first element to their
// last, so that the processor's prefetchers can follow each of them.
struct SumAndUpdate {
  int64_t n = 0;
  // The gradient is the sum over r, in order, of weights[r] * parts[r]; zero
  // without parts. A part may start at any byte.
  int count = 0;
  const float* const* parts = nullptr;
  const float* weights = nullptr;
  const float* weight_in = nullptr;
  float* weight_out = nullptr;    // may equal weight_in
  float* const* state = nullptr;  // one array for each state of the rule
  ChunkFold* fold = nullptr;      // takes new weights, for their checksum
};

// One compilation of the pass. All give the same bits.
struct SumAndUpdateVersion {
  const char* name;
  // `step` must update weights directly (!makes_direction). Returns the number
  // of weights that call.fold has taken: all whole chunks, or none where the
  // instruction set has no carry-less product.
  int64_t (*run)(const OptimizerStep& step, const SumAndUpdate& call);
};

// The versions whose instructions this processor has, the fastest last.
std::vector<SumAndUpdateVersion> SupportedSumAndUpdateVersions();
const SumAndUpdateVersion& BestSumAndUpdateVersion();

}  // namespace tributary
