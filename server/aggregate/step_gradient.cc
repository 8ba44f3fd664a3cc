// SPDX-License-Identifier: Apache-2.0
#include "server/aggregate/step_gradient.h"

#include <algorithm>

#include "kernels/ops.h"

namespace tributary {

StepGradient::StepGradient(const Block& block, GradientAggregator* aggregator,
                           int64_t group)
    : block_(block),
      aggregator_(aggregator),
      group_bytes_(group * block.bytes()),
      adds_early_(aggregator->num_members() * block.gradient_bytes() >=
                  2 * group_bytes_) {}

bool StepGradient::HasGroup() const {
  if (!adds_early_ || aggregator_->announced_samples() == 0) return false;
  int64_t waiting = 0;
  const int end = aggregator_->arrived();
  for (int rank = aggregator_->added(); rank < end; ++rank) {
    const Contribution& c = aggregator_->contributions()[rank];
    if (!c.in_shared_memory) waiting += static_cast<int64_t>(c.payload.size());
  }
  return waiting >= group_bytes_;
}

void StepGradient::AddArrived(Ops& ops) {
  const int end = aggregator_->arrived();
  ContributionRuns runs = RunsBelow(end);
  if (!sum_) sum_ = SharedBuffer(block_.size);
  Sum(ops, runs);
  aggregator_->MarkAdded(end);
}

ContributionRuns StepGradient::Runs() const { return RunsBelow(num_ranks()); }

ContributionRuns StepGradient::RunsBelow(int end) const {
  return {block_, *aggregator_,
          aggregator_->added() > 0 ? sum_.data() : nullptr, end};
}

void StepGradient::Average(Ops& ops) {
  ContributionRuns runs = Runs();
  if (!sum_) sum_ = SharedBuffer(block_.size);
  if (runs.count() > 0) {
    Sum(ops, runs);
  } else {
    std::fill_n(sum_.data(), block_.size, 0.0f);
  }
  aggregator_->MarkAdded(num_ranks());
}

// The sum so far is the first part and is overwritten with the new sum.
void StepGradient::Sum(Ops& ops, ContributionRuns& runs) {
  for (int64_t begin = 0, n = 0; begin < block_.size; begin += n) {
    n = runs.Next(block_.size - begin);
    ops.WeightedSum(n, runs.count(), runs.parts(), runs.weights(),
                    sum_.data() + begin);
  }
}

uint64_t StepGradient::held_bytes() const {
  const uint64_t payloads = aggregator_->held_bytes();
  return aggregator_->added() > 0
             ? payloads + static_cast<uint64_t>(block_.bytes())
             : payloads;
}

}  // namespace tributary
