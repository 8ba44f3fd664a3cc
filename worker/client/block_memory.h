#pragma once

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/plan/partition_plan.h"
#include "worker/client/error_feedback.h"

namespace tributary {

// A block's bytes as a message carries them.
struct BlockMemory {
  std::vector<grpc::Slice> slices;
  uint32_t crc32c = 0;
  size_t bytes = 0;
};

// The block inside whole tensors, one for each parameter: slice by slice,
// without a copy. The tensors must outlive every use of the result.
BlockMemory Borrow(const Block& block, absl::Span<const float* const> tensors);

// The block's gradient in the encodings of its slices: borrowed when these are
// float32, else a copy that the result owns. Such a copy changes the residuals,
// so it is made once for each step.
BlockMemory GradientOf(const Block& block,
                       absl::Span<const float* const> tensors,
                       ErrorFeedback* feedback);

}  // namespace tributary
