#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/plan/partition_plan.h"

namespace tributary {

// The sums over whole tensors that a step may need.
enum class StatisticsKind {
  kGradientNorm,  // 1 value a grain: squares of the averaged gradient
  kTrustRatio,    // 2 values a grain: squares of weight and of direction
};

// Collects sums per grain from this shard's blocks and from the other shards,
// and adds them up in the canonical order of the grains, so that the result
// does not depend on how the parameters are cut. Remembers the open step and
// the one before (a slower shard may still ask). A plain object: its owner
// locks.
class StatisticsExchange {
 public:
  StatisticsExchange(const PartitionPlan& plan, int shard);

  static int ValuesPerGrain(StatisticsKind kind) {
    return kind == StatisticsKind::kTrustRatio ? 2 : 1;
  }
  int64_t num_grains(int shard) const { return num_grains_[shard]; }
  // Of a block's first grain among this shard's.
  int64_t first_grain(int block) const { return first_grain_[block]; }

  // Sets the values of one block (its grains in order, ValuesPerGrain each).
  // True when this shard's values are complete with it.
  bool AddBlock(int64_t step, StatisticsKind kind, int block,
                absl::Span<const double> values);

  // Sets all of another shard's values. True when every shard's are there and
  // were not before. InvalidArgument when their number is wrong.
  absl::Status AddShard(int64_t step, StatisticsKind kind, int shard,
                        std::vector<double> values, bool* complete);

  // This shard's values once complete.
  std::optional<std::vector<double>> Local(int64_t step,
                                           StatisticsKind kind) const;
  bool Complete(int64_t step, StatisticsKind kind) const;
  // The shards, this one or others, without whose values the exchange that is
  // under way cannot be completed; none: nothing is under way.
  std::vector<int> MissingShards() const;

  // Sums of each value over each parameter's grains: [ValuesPerGrain]
  // [parameter]. Complete(step, kind).
  std::vector<std::vector<double>> PerParameter(int64_t step,
                                                StatisticsKind kind) const;

  // Steps below `step` are not asked for any more.
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

  Gathered& Find(int64_t step, StatisticsKind kind);

  const int shard_;
  const size_t num_parameters_;
  const size_t num_blocks_;
  std::vector<int64_t> first_grain_;  // [block]
  // A slice of a shard, and its first grain among those of the shard.
  struct SliceGrains {
    int shard = 0;
    Slice slice;
    int64_t first_grain = 0;
  };
  std::vector<SliceGrains> slices_;  // of all shards
  std::vector<int64_t> num_grains_;  // [shard]
  int64_t oldest_step_ = 0;
  std::map<Key, Gathered> gathered_;
};

}  // namespace tributary
