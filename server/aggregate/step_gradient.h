// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/partition_plan.h"
#include "common/wire/shared_buffer.h"
#include "kernels/sum_and_update.h"
#include "server/aggregate/contribution_runs.h"
#include "server/aggregate/gradient_aggregator.h"

namespace tributary {

class Ops;

// The averaged gradient of a block's open step: the contributions that the
// aggregator holds, weighted by their samples and added in rank order.
//
// With few ranks all contributions are kept until the step is complete, and one
// pass over memory sums them. With many ranks they would take many times the
// memory of the weights. So once a group of contributions waits whose ranks
// follow those already added, the group is added to a sum, and its payloads are
// released. The bits do not change: the floats are added in the same order, and
// to store a sum between two additions does not round it. This needs the total
// of samples in advance (GradientAggregator::announced_samples). Contributions
// in the workers' memory take no memory of this process, so they form no group.
//
// Running averages that the received values replace are averaged in double
// (ReplacedMean); their sums are in double, too.
//
// A plain object: the block's lock guards it.
class StepGradient {
 public:
  // Elements [begin, end) of the block.
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
  };
  // The elements of the running averages that are replaced, in order.
  struct Replaced {
    std::vector<Range> ranges;
    bool of_rank_0 = false;
  };

  // Payload bytes of a group, as a multiple of the sum's bytes. The sum is read
  // and written once for each group, which adds a quarter to the bytes that are
  // read. With fewer than two groups in a step nothing is added early: that
  // would save less than half of the memory.
  static constexpr int64_t kGroup = 8;

  // The block and the aggregator must outlive it. group: instead of kGroup.
  StepGradient(const Block& block, GradientAggregator* aggregator,
               int64_t group, Replaced replaced);

  // Whether a group waits.
  bool HasGroup() const;
  // Adds the contributions of all ranks below the first missing one. Call it
  // when a group waits and the step is not complete.
  void AddArrived(Ops& ops);

  // All contributions to the complete step, for a pass that sums and updates.
  ContributionRuns Runs() const;
  // Whether some contribution has values for the replaced averages.
  bool HasReplaced() const;
  // Computes the mean of the replaced averages over the parts of `runs`, which
  // are n elements from `begin`, and the contributions added before. Requires
  // HasReplaced().
  void MeanOfReplaced(int64_t begin, int64_t n, const ContributionRuns& runs,
                      float* mean) const;
  // Averages all contributions to data() and releases their payloads.
  void Average(Ops& ops);
  const float* data() const { return sum_.data(); }

  // Memory of the open step's contributions: payloads and their sum.
  uint64_t held_bytes() const;

 private:
  int num_ranks() const {
    return static_cast<int>(aggregator_->contributions().size());
  }
  // The contributions of the ranks below `end`, after the sum of those that
  // were added.
  ContributionRuns RunsBelow(int end) const;
  void Sum(Ops& ops, ContributionRuns& runs, bool is_last);
  // The parts that count in a mean of replaced averages, and their weights.
  struct Counted {
    std::vector<const float*> parts;
    std::vector<float> weights;
  };
  Counted CountedOf(const ContributionRuns& runs) const;
  // Adds n elements of `runs`, from `begin` on, to the sums of the replaced
  // averages.
  void AddReplaced(int64_t begin, int64_t n, const ContributionRuns& runs);

  const Block& block_;
  GradientAggregator* const aggregator_;
  const int64_t group_bytes_;
  const bool adds_early_;
  // The weighted sum of the contributions added so far; after Average, the mean
  // of all. Not allocated before the first addition.
  SharedBuffer sum_;
  const Replaced replaced_;
  // The sums of the replaced averages that were added early, [element of the
  // block], and the sum of their weights.
  std::vector<double> replaced_sum_;
  double replaced_weight_ = 0;
};

// How a block adds up contributions. Every choice gives the same bits.
struct Summation {
  // As StepGradient::kGroup. Tests with few ranks take less.
  int64_t group = StepGradient::kGroup;
  // The compiled version of the sum and update.
  SumAndUpdateVersion version = BestSumAndUpdateVersion();
};

}  // namespace tributary
