// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/host/memory/shared_arena.h"
#include "common/plan/partition_plan.h"
#include "worker/rank/client/error_feedback.h"

namespace tributary {

// A block's bytes as a message carries them.
struct BlockMemory {
  std::vector<grpc::Slice> slices;
  uint32_t crc32c = 0;
  size_t bytes = 0;
};

// Collects the block's values from `tensors`, one whole tensor for each
// parameter. The result owns its bytes: it refers to slices inside `arena` and
// keeps the arena alive; other slices, or all when `arena` is null, are copied.
BlockMemory Gather(const Block& block, absl::Span<const float* const> tensors,
                   const std::shared_ptr<SharedArena>& arena);

// Returns the block's gradient in the encodings of its slices: the result of
// Gather when they are float32, else an encoded copy. Encoding changes the
// residuals, so call this once for each step.
BlockMemory GradientOf(const Block& block,
                       absl::Span<const float* const> tensors,
                       const std::shared_ptr<SharedArena>& arena,
                       ErrorFeedback* feedback);

}  // namespace tributary
