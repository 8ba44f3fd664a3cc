// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "common/plan/partition_plan.h"

namespace tributary {

// Tells which blocks may leave as gradients become final in the backward pass:
// a block leaves with the last of its parameters. A plain object.
class GradientBucketer {
 public:
  // `plan` must outlive the bucketer. `holds`: true for the blocks of this
  // worker; null: all blocks are.
  explicit GradientBucketer(
      const PartitionPlan& plan,
      const std::function<bool(const Block&)>& holds = nullptr);

  // Begins a step: nothing is ready.
  void Reset();

  // `parameter`'s gradient is final: calls `leave` for each block that is
  // complete with it. Every parameter is marked once a step.
  void MarkReady(int parameter, const std::function<void(const Block&)>& leave);

 private:
  struct Pending {
    const Block* block;
    int slices;  // of the block
    int left;    // slices that are not ready yet
  };
  std::vector<Pending> blocks_;
  std::vector<std::vector<int>> blocks_of_;  // [parameter], one per slice
};

}  // namespace tributary
