// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/block_memory.h"

#include "common/wire/crc32c/crc32c.h"
#include "common/wire/shared_buffer.h"
#include "common/wire/tensor_frame.h"

namespace tributary {
namespace {

BlockMemory Encode(const Block& block, absl::Span<const float* const> tensors,
                   ErrorFeedback* feedback) {
  BlockMemory memory;
  memory.bytes = static_cast<size_t>(block.gradient_bytes());
  const SharedBuffer buffer(
      static_cast<int64_t>(memory.bytes / sizeof(float) + 1));
  auto* out = reinterpret_cast<char*>(buffer.data());
  for (const Slice& slice : block.slices) {
    memory.crc32c = feedback->Encode(
        slice, tensors[slice.parameter] + slice.begin, out, memory.crc32c);
    out += slice.gradient_bytes();
  }
  memory.slices.push_back(SharedSlice(buffer, memory.bytes));
  return memory;
}

}  // namespace

BlockMemory Gather(const Block& block, absl::Span<const float* const> tensors,
                   const std::shared_ptr<SharedArena>& arena) {
  BlockMemory memory;
  for (const Slice& slice : block.slices) {
    const float* data = tensors[slice.parameter] + slice.begin;
    const size_t bytes = slice.size() * sizeof(float);
    memory.crc32c = ExtendCrc32c(memory.crc32c, data, bytes);
    memory.slices.push_back(arena && arena->OffsetOf(data, bytes)
                                ? OwnedSlice(data, bytes, arena)
                                : grpc::Slice(data, bytes));
    memory.bytes += bytes;
  }
  return memory;
}

BlockMemory GradientOf(const Block& block,
                       absl::Span<const float* const> tensors,
                       const std::shared_ptr<SharedArena>& arena,
                       ErrorFeedback* feedback) {
  return block.sends_floats() ? Gather(block, tensors, arena)
                              : Encode(block, tensors, feedback);
}

}  // namespace tributary
