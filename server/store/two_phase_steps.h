// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/optimizer/grouped_optimizer.h"
#include "server/store/shard_blocks.h"
#include "server/store/statistics/statistics_calls.h"

namespace tributary {

// The steps of a shard that need sums over the whole gradient before any block
// may be updated: the norm that clips, the factored moments of Adafactor, and
// the norms of directions.
class TwoPhaseSteps {
 public:
  explicit TwoPhaseSteps(ShardBlocks* shard)
      : shard_(*shard),
        calls_(*shard->options().plan, shard->options().shard,
               shard->phases().optimizer().of_group(0)) {}

  // Averages a block's contributions to the open step and returns the sums that
  // the step needs first. Give them to Offer outside the lock.
  std::vector<double> BeginLocked(BlockState& block,
                                  const OptimizerSteps& prepared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mu);
  void Offer(int64_t step, int block, const std::vector<double>& values);
  // Adds another shard's sums. InvalidArgument when their number is wrong.
  absl::Status AddStatistics(int64_t step, StatisticsKind kind, int shard,
                             std::vector<double> values);
  StatisticsCalls& calls() { return calls_; }

 private:
  void Offer(int64_t step, StatisticsKind kind, int block,
             const std::vector<double>& values);
  // Goes on with a step whose sums are complete.
  void Continue(int64_t step, StatisticsKind kind);
  // squares: of each parameter's averaged gradient.
  void OfferFactors(int64_t step, double scale, std::vector<double> squares);
  // factors: the totals of AddFactorSums, or null.
  void MakeDirections(int64_t step, double gradient_scale,
                      const std::vector<std::vector<double>>* factors);
  // sums: of weights and directions; null: the averaged gradient is applied.
  void ApplyEverywhere(int64_t step, double gradient_scale,
                       const std::vector<std::vector<double>>* sums);
  void SkipEverywhere();

  ShardBlocks& shard_;
  StatisticsCalls calls_;
};

}  // namespace tributary
