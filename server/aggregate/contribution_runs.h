// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/partition_plan.h"
#include "common/wire/payload.h"
#include "server/aggregate/gradient_aggregator.h"
#include "server/aggregate/gradient_reader.h"

namespace tributary {

// Reads the contributions of a block side by side, in rank order, in runs that
// are contiguous in each of them. Contributions without samples are left out;
// the others are weighted by their samples (docs/consistency.md).
//
//   ContributionRuns runs(block, aggregator, nullptr, num_workers);
//   for (int64_t begin = 0; begin < size; begin += n) {
//     n = runs.Next(size - begin);  // parts() are elements [begin, begin + n)
//   }
class ContributionRuns {
 public:
  // Elements of the longest run: what a run writes stays in the first-level
  // cache.
  static constexpr int64_t kLongest = 4096;

  // Both constructors refer to the block, the payloads' bytes and the sums.
  //
  // Reads the contributions of the ranks below `end`. `sum`: the sum of those
  // that the aggregator has marked as added, which is the first part, with
  // weight 1. Null: none was added.
  ContributionRuns(const Block& block, const GradientAggregator& aggregator,
                   const float* sum, int end);
  // Reads one gradient in float32, with weight 1.
  ContributionRuns(const Block& block, const float* gradient);
  ContributionRuns(ContributionRuns&&) = default;

  // Goes to the next run, of at most `limit` elements, and returns its length.
  // At least `limit` elements must be left. Where a received piece ends within
  // the run, a copy of a few elements bridges the border. Encoded elements are
  // decoded to a copy.
  int64_t Next(int64_t limit);

  int count() const { return static_cast<int>(readers_.size()); }
  const float* const* parts() const { return parts_.data(); }
  const float* weights() const { return weights_.data(); }
  // The first part is a sum of contributions that were added before.
  bool begins_with_sum() const { return begins_with_sum_; }
  // The rank that sent the part; -1: the part is a sum or a mean.
  int rank(int part) const { return ranks_[part]; }

 private:
  void AddFloats(const Block& block, const float* floats);

  Payload floats_;  // the sum or gradient, for its reader
  std::vector<GradientReader> readers_;
  std::vector<float> weights_;
  std::vector<int> ranks_;
  bool begins_with_sum_ = false;
  std::vector<const float*> parts_;
  int64_t copied_ = 0;         // elements of a copy
  std::vector<float> copies_;  // one for each contribution
};

}  // namespace tributary
