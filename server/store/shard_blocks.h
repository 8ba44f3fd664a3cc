// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/step_count.h"
#include "common/checkpoint/block_cut.h"
#include "common/plan/partition_plan.h"
#include "common/plan/rank_progress.h"
#include "common/trace/trace_recorder.h"
#include "common/update/update_phases.h"
#include "server/store/block_state.h"
#include "server/store/shard_counters.h"
#include "server/store/shard_training.h"
#include "server/store/statistics/statistics_exchange.h"

namespace tributary {

class Ops;

// Functions that a shard calls.
struct ShardCallbacks {
  std::function<void(const absl::Status& why)> on_fatal;
  // Takes a block's snapshot for a checkpoint, under the block's lock.
  std::function<void(const BlockCut&)> on_checkpoint;
  // Called when this shard's statistics are complete: fetches the other shards'
  // statistics and gives them to AddStatistics. Called outside every lock;
  // unused with one shard.
  std::function<void(int64_t step, StatisticsKind kind)> fetch_statistics;
};

struct ShardOptions {
  const PartitionPlan* plan = nullptr;  // outlives the shard
  int shard = 0;
  int num_workers = 1;
  std::vector<uint64_t> fences;  // as in GradientAggregator::Options
  // The workers' mesh; default: every worker holds all parameters.
  std::optional<DeviceMesh> mesh;
  ShardTraining training;
  Ops* ops = nullptr;                   // the CPU's; outlives the shard
  std::shared_ptr<SharedArena> memory;  // as in BlockState::Options
  const Clock* clock = &Clock::Real();  // measures how long updates take
  ShardCallbacks callbacks;
  TraceRecorder* trace = nullptr;  // of traced steps; or null
};

// The blocks of a shard, each with its own lock, and what they share: options,
// optimizer and counters. The functions below take one lock after the other.
class ShardBlocks {
 public:
  explicit ShardBlocks(ShardOptions options);

  const ShardOptions& options() const { return options_; }
  const ShardTraining& training() const { return options_.training; }
  const StepCount& count() const { return count_; }
  const UpdatePhases& phases() const { return phases_; }
  ShardCounters& counters() { return counters_; }
  const ShardCounters& counters() const { return counters_; }
  const std::vector<std::unique_ptr<BlockState>>& blocks() const {
    return blocks_;
  }

  // The learning rates of the block's open step: those that came with its
  // contributions, or else the schedule's.
  LearningRates RatesLocked(BlockState& block) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mu);

  // Hands over a snapshot of the block if its version is due for a checkpoint.
  void CutIfDueLocked(BlockState& block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mu);
  // Hands over a snapshot of every block after `steps` steps, which all workers
  // have finished, while none begins another. A block whose snapshot was taken
  // is passed over. Unavailable: a block has not reached this step yet.
  // FailedPrecondition: a block is past it, or the plan writes no checkpoints.
  absl::Status CutAll(int64_t steps);

  // Fills every block with its values after each rank's first `contributions`.
  // skipped_steps: as in BlockState::Restore.
  using LoadBlock = BlockState::Load;
  absl::Status Restore(int64_t contributions, int64_t skipped_steps,
                       const LoadBlock& load);

  // Fences the rank's earlier incarnations, so that the returned progress stays
  // valid for this one. `recomputes`: see GradientAggregator::Fence.
  // FailedPrecondition: there is a later incarnation.
  absl::StatusOr<RankProgress> ReadClock(int rank, uint64_t incarnation,
                                         bool recomputes);
  // FailedPrecondition: another process has taken the rank from this
  // incarnation.
  absl::Status CheckFence(int block, int rank, uint64_t incarnation) const;

  int64_t MinVersion() const;
  int64_t MaxVersion() const;
  // The ranks that block a waiting worker, in any block.
  std::vector<int> MissingRanks() const;
  uint64_t waiting_calls() const;
  uint64_t held_bytes() const;

 private:
  std::vector<bool> MembersOf(const Block& block) const;
  void CutLocked(BlockState& block, int64_t steps)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mu);

  const ShardOptions options_;
  const StepCount count_;
  const UpdatePhases phases_;
  std::vector<std::unique_ptr<BlockState>> blocks_;
  ShardCounters counters_;
};

}  // namespace tributary
