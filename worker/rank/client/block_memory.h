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

// The block inside whole tensors, one for each parameter. The result owns its
// bytes: slices inside `arena` are referred to where they are and keep it
// alive; others, or all when it is null, are copied.
BlockMemory Gather(const Block& block, absl::Span<const float* const> tensors,
                   const std::shared_ptr<SharedArena>& arena);

// The block's gradient in the encodings of its slices: as from Gather when
// these are float32, else a copy. Such a copy changes the residuals, so it is
// made once for each step.
BlockMemory GradientOf(const Block& block,
                       absl::Span<const float* const> tensors,
                       const std::shared_ptr<SharedArena>& arena,
                       ErrorFeedback* feedback);

}  // namespace tributary
