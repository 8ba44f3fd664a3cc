// SPDX-License-Identifier: Apache-2.0
#include "common/plan/gradient_bucketer.h"

#include "common/base/check.h"

namespace tributary {

GradientBucketer::GradientBucketer(
    const PartitionPlan& plan, const std::function<bool(const Block&)>& holds)
    : blocks_of_(plan.parameters().size()) {
  for (int shard = 0; shard < plan.num_shards(); ++shard) {
    for (const Block& block : plan.blocks(shard)) {
      if (holds && !holds(block)) continue;
      const int slices = static_cast<int>(block.slices.size());
      for (const Slice& slice : block.slices) {
        blocks_of_[slice.parameter].push_back(static_cast<int>(blocks_.size()));
      }
      blocks_.push_back({&block, slices, slices});
    }
  }
}

void GradientBucketer::Reset() {
  for (Pending& pending : blocks_) pending.left = pending.slices;
}

void GradientBucketer::MarkReady(
    int parameter, const std::function<void(const Block&)>& leave) {
  for (int index : blocks_of_[parameter]) {
    Pending& pending = blocks_[index];
    TRIBUTARY_CHECK(pending.left > 0);
    if (--pending.left == 0) leave(*pending.block);
  }
}

}  // namespace tributary
