// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/optimizer/grouped_optimizer.h"
#include "common/plan/partition_plan.h"
#include "common/update/factored_moments.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

// The optimizer's state of one block, in runs of elements that one optimizer
// step updates. A plain object: the block's lock guards it.
class BlockRuns {
 public:
  // Elements whose parameters take the same optimizer step as `like`: with
  // weight decay, without it, of one parameter group, or as running averages.
  // With an optimizer that factors moments a run is a slice.
  struct Run {
    int64_t begin = 0;
    int64_t end = 0;
    const ParameterSpec* like = nullptr;
    int group = 0;                           // of `like` in the optimizer
    bool frozen = false;                     // weights and state never change
    int64_t state_begin = 0;                 // of `begin` in the state
    std::optional<FactoredMoments> moments;  // instead of values in the state
    int parameter = 0;                       // of the moments

    int64_t size() const { return end - begin; }
  };
  // Reads a block of the plan's slices: weights, and as many elements of each
  // of the optimizer's states.
  using Load = std::function<absl::Status(const Block& block, float* weights,
                                          const std::vector<float*>& state)>;

  // All three must outlive this object.
  BlockRuns(const Block& block, const GroupedOptimizer& optimizer,
            const ParameterSpecs& parameters);

  const std::vector<Run>& runs() const { return runs_; }
  // The state of element `begin` of a run.
  using Pointers = std::array<float*, kMaxOptimizerStates>;
  Pointers StateAt(const Run& run, int64_t begin) const;

  // Sets the state before the first step, for these weights.
  void Initialize(const float* weights);
  // Reads the weights and the state.
  absl::Status Restore(const Load& load, float* weights);
  // The states for a checkpoint, each with as many elements as the block.
  std::vector<SharedBuffer> Expanded() const;
  // totals: the result of AddFactorSums.
  void UpdateFactors(const OptimizerSteps& steps,
                     const std::vector<std::vector<double>>& totals);

 private:
  absl::Status RestoreExpanded(const Load& load, float* weights);

  const Block& block_;
  const GroupedOptimizer& optimizer_;
  std::vector<Run> runs_;  // fixed, except the moments
  // One per state name; none when all runs have factored moments.
  std::vector<SharedBuffer> state_;
};

}  // namespace tributary
