// SPDX-License-Identifier: Apache-2.0
#include "server/aggregate/step_gradient.h"

#include <algorithm>
#include <utility>

#include "common/base/replaced_mean.h"
#include "kernels/ops.h"

namespace tributary {

StepGradient::StepGradient(const Block& block, GradientAggregator* aggregator,
                           int64_t group, Replaced replaced)
    : block_(block),
      aggregator_(aggregator),
      group_bytes_(group * block.bytes()),
      adds_early_(aggregator->num_members() * block.gradient_bytes() >=
                  2 * group_bytes_),
      replaced_(std::move(replaced)) {}

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
  Sum(ops, runs, /*is_last=*/false);
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
    Sum(ops, runs, /*is_last=*/true);
  } else {
    std::fill_n(sum_.data(), block_.size, 0.0f);
  }
  aggregator_->MarkAdded(num_ranks());
}

// The sum so far is the first part and is overwritten with the new sum.
void StepGradient::Sum(Ops& ops, ContributionRuns& runs, bool is_last) {
  if (!runs.begins_with_sum()) replaced_weight_ = 0;
  auto range = replaced_.ranges.begin();
  for (int64_t begin = 0, n = 0; begin < block_.size; begin += n) {
    if (range != replaced_.ranges.end() && begin == range->end) ++range;
    const bool has_range = range != replaced_.ranges.end();
    const bool is_replaced = has_range && begin >= range->begin;
    const int64_t end = !has_range    ? block_.size
                        : is_replaced ? range->end
                                      : range->begin;
    n = runs.Next(end - begin);
    float* const sum = sum_.data() + begin;
    if (!is_replaced) {
      ops.WeightedSum(n, runs.count(), runs.parts(), runs.weights(), sum);
    } else if (!is_last) {
      AddReplaced(begin, n, runs);
    } else if (HasReplaced()) {
      MeanOfReplaced(begin, n, runs, sum);
    }
  }
  for (const float weight : CountedOf(runs).weights) replaced_weight_ += weight;
}

StepGradient::Counted StepGradient::CountedOf(
    const ContributionRuns& runs) const {
  Counted counted;
  for (int p = runs.begins_with_sum() ? 1 : 0; p < runs.count(); ++p) {
    if (replaced_.of_rank_0 && runs.rank(p) != 0) continue;
    counted.parts.push_back(runs.parts()[p]);
    counted.weights.push_back(replaced_.of_rank_0 ? 1 : runs.weights()[p]);
  }
  return counted;
}

bool StepGradient::HasReplaced() const {
  return replaced_.of_rank_0 ? aggregator_->contributions()[0].samples > 0
                             : aggregator_->has_samples();
}

void StepGradient::AddReplaced(int64_t begin, int64_t n,
                               const ContributionRuns& runs) {
  replaced_sum_.resize(block_.size);
  double* const sums = replaced_sum_.data() + begin;
  if (!runs.begins_with_sum()) std::fill_n(sums, n, 0.0);
  const Counted counted = CountedOf(runs);
  for (size_t p = 0; p < counted.parts.size(); ++p) {
    for (int64_t i = 0; i < n; ++i) {
      sums[i] += static_cast<double>(counted.weights[p]) * counted.parts[p][i];
    }
  }
}

void StepGradient::MeanOfReplaced(int64_t begin, int64_t n,
                                  const ContributionRuns& runs,
                                  float* mean) const {
  const Counted counted = CountedOf(runs);
  const bool added = runs.begins_with_sum();
  MeanInDouble(n, static_cast<int>(counted.parts.size()), counted.parts.data(),
               counted.weights.data(),
               added ? replaced_sum_.data() + begin : nullptr,
               added ? replaced_weight_ : 0, mean);
}

uint64_t StepGradient::held_bytes() const {
  const uint64_t payloads = aggregator_->held_bytes();
  return aggregator_->added() > 0
             ? payloads + static_cast<uint64_t>(block_.bytes())
             : payloads;
}

}  // namespace tributary
