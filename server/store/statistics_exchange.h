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

// The sums over whole tensors that an optimizer step may need.
enum class StatisticsKind {
  kGradientNorm,  // 1 value per grain: sum of squares of the averaged gradient
  kTrustRatio,    // 2 values per grain: squares of weight and of direction
};

// Collects sums per grain from this shard's blocks and from the other shards,
// and adds them up in the canonical order of the grains. The result therefore
// does not depend on the partition of the parameters. Keeps the open step and
// the one before, which a slower shard may still ask for. A plain object: its
// owner locks.
class StatisticsExchange {
 public:
  StatisticsExchange(const PartitionPlan& plan, int shard);

  static int ValuesPerGrain(StatisticsKind kind) {
    return kind == StatisticsKind::kTrustRatio ? 2 : 1;
  }
  // Index of a block's first grain among this shard's grains.
  int64_t first_grain(int block) const { return first_grain_[block]; }

  // Sets the values of one block (its grains in order, ValuesPerGrain each).
  // True when this shard's values are now complete.
  bool AddBlock(int64_t step, StatisticsKind kind, int block,
                absl::Span<const double> values);

  // Sets all of another shard's values. `*complete` becomes true when these
  // were the last that were missing. InvalidArgument when their number is
  // wrong.
  absl::Status AddShard(int64_t step, StatisticsKind kind, int shard,
                        std::vector<double> values, bool* complete);

  // This shard's values; none until they are complete.
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
