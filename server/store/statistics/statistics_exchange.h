// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/optimizer/optimizer.h"
#include "common/plan/partition_plan.h"

namespace tributary {

// The sums over whole tensors that an optimizer step may need.
enum class StatisticsKind {
  kGradientNorm,  // 1 value per grain: sum of squares of the averaged gradient
  kFactors,       // FactorSums of each slice's averaged gradient
  kTrustRatio,    // 2 values per grain: squares of weight and of direction
};
inline constexpr int kStatisticsKinds = 3;

// Collects values of slices, such as sums per grain, from this shard's blocks
// and from the other shards, and adds them up in the canonical order of the
// grains. The result therefore does not depend on the partition of the
// parameters. Keeps the open step and the one before, which a slower shard may
// still ask for. A plain object: its owner locks.
class StatisticsExchange {
 public:
  StatisticsExchange(const PartitionPlan& plan, int shard,
                     Optimizer optimizer = Optimizer({}));

  // Sets the values of one block, slice by slice.
  // True when this shard's values are now complete.
  bool AddBlock(int64_t step, StatisticsKind kind, int block,
                absl::Span<const double> values);

  // Sets all of another shard's values. `*complete` becomes true when these
  // were the last that were missing. InvalidArgument when their number is
  // wrong.
  absl::Status AddShard(int64_t step, StatisticsKind kind, int shard,
                        std::vector<double> values, bool* complete);

  // This shard's values; nullopt until they are complete.
  std::optional<std::vector<double>> Local(int64_t step,
                                           StatisticsKind kind) const;
  bool Complete(int64_t step, StatisticsKind kind) const;
  // The shards, this one included, whose values are missing in the newest
  // exchange. Empty when no exchange is in progress.
  std::vector<int> MissingShards() const;

  // Sums of each value over each parameter's grains: [value][parameter].
  // Requires Complete(step, kind).
  std::vector<std::vector<double>> PerParameter(int64_t step,
                                                StatisticsKind kind) const;

  // The totals of kFactors, as AddFactorSums returns them. Requires
  // Complete(step, kFactors).
  std::vector<std::vector<double>> FactorTotals(int64_t step) const;

  // Drops the statistics of steps below `step`.
  void ForgetBefore(int64_t step);
  int64_t oldest_step() const { return oldest_step_; }

 private:
  struct Gathered {
    std::vector<std::vector<double>> shards;  // empty until complete
    std::vector<double> local;                // filled block by block
    size_t blocks_left = 0;
    size_t shards_left = 0;
  };
  using Key = std::pair<int64_t, StatisticsKind>;

  // The positions of one kind's values.
  struct Layout {
    std::vector<int64_t> num_values;   // [shard]
    std::vector<int64_t> first;        // [slice in slices_], within the shard
    std::vector<int64_t> block_first;  // [block of this shard]
  };
  // A slice of a shard.
  struct ShardSlice {
    int shard = 0;
    Slice slice;
  };

  Gathered& Find(int64_t step, StatisticsKind kind);
  int64_t ValuesOf(StatisticsKind kind, const Slice& slice) const;
  const Layout& LayoutOf(StatisticsKind kind) const {
    return layouts_[static_cast<size_t>(kind)];
  }
  // The values of slices_[i] in complete statistics.
  const double* ValuesAt(const Gathered& gathered, StatisticsKind kind,
                         size_t i) const {
    return gathered.shards[slices_[i].shard].data() + LayoutOf(kind).first[i];
  }

  const int shard_;
  const Optimizer optimizer_;
  const ParameterSpecs parameters_;
  const size_t num_blocks_;
  std::vector<ShardSlice> slices_;  // of all shards
  std::array<Layout, kStatisticsKinds> layouts_;
  int64_t oldest_step_ = 0;
  std::map<Key, Gathered> gathered_;
};

}  // namespace tributary
