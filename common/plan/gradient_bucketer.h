// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/plan/partition_plan.h"

namespace tributary {

// Tells which blocks can be sent as gradients become final in the backward
// pass: a block is sent once its last element is final. A plain object.
class GradientBucketer {
 public:
  // `plan` must outlive the bucketer. `holds`: true for the blocks of this
  // worker; null: all blocks are its own.
  explicit GradientBucketer(
      const PartitionPlan& plan,
      const std::function<bool(const Block&)>& holds = nullptr);

  // Begins a step: nothing is ready.
  void Reset();

  // Elements begin to end - 1 of `parameter`'s gradient are final: calls
  // `leave` for each block that is complete with them, in the order of the
  // parameter's elements. Every element is marked once a step.
  void MarkReady(int parameter, int64_t begin, int64_t end,
                 const std::function<void(const Block&)>& leave);
  // The same for all elements of `parameter`.
  void MarkReady(int parameter, const std::function<void(const Block&)>& leave);

 private:
  struct Pending {
    const Block* block;
    int64_t left;  // elements that are not ready yet
  };
  struct Part {  // a slice of a block
    int64_t begin;
    int64_t end;
    int block;
  };
  std::vector<Pending> blocks_;
  std::vector<std::vector<Part>> parts_;  // [parameter], in order of elements
};

}  // namespace tributary
