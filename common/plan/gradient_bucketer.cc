// SPDX-License-Identifier: Apache-2.0
#include "common/plan/gradient_bucketer.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "common/base/check.h"

namespace tributary {

GradientBucketer::GradientBucketer(
    const PartitionPlan& plan, const std::function<bool(const Block&)>& holds)
    : parts_(plan.parameters().size()) {
  for (int shard = 0; shard < plan.num_shards(); ++shard) {
    for (const Block& block : plan.blocks(shard)) {
      if (holds && !holds(block)) continue;
      for (const Slice& slice : block.slices) {
        parts_[slice.parameter].push_back(
            {slice.begin, slice.end, static_cast<int>(blocks_.size())});
      }
      blocks_.push_back({&block, block.size});
    }
  }
  for (std::vector<Part>& parts : parts_) {
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.begin < b.begin; });
  }
}

void GradientBucketer::Reset() {
  for (Pending& pending : blocks_) pending.left = pending.block->size;
}

void GradientBucketer::MarkReady(
    int parameter, int64_t begin, int64_t end,
    const std::function<void(const Block&)>& leave) {
  for (const Part& part : parts_[parameter]) {
    const int64_t ready = std::min(end, part.end) - std::max(begin, part.begin);
    if (ready <= 0) continue;
    Pending& pending = blocks_[part.block];
    TRIBUTARY_CHECK(pending.left >= ready);
    pending.left -= ready;
    if (pending.left == 0) leave(*pending.block);
  }
}

void GradientBucketer::MarkReady(
    int parameter, const std::function<void(const Block&)>& leave) {
  MarkReady(parameter, 0, std::numeric_limits<int64_t>::max(), leave);
}

}  // namespace tributary
