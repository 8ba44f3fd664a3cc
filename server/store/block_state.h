// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/replaced_mean.h"
#include "common/optimizer/grouped_optimizer.h"
#include "common/plan/partition_plan.h"
#include "common/update/update_phases.h"
#include "common/wire/shared_buffer.h"
#include "kernels/sum_and_update.h"
#include "server/aggregate/gradient_aggregator.h"
#include "server/aggregate/step_gradient.h"
#include "server/store/block_runs.h"
#include "server/store/block_waiter.h"
#include "server/store/shard_counters.h"
#include "server/store/weight_versions.h"
#include "server/store/weights_snapshot.h"
#include "server/sync/sync_policy.h"

namespace tributary {

class ContributionRuns;
class Ops;

// One block of a shard: weights, optimizer state, the open step's contributions
// and the waiting calls. The owner (ParameterShard) takes the lock.
class BlockState {
 public:
  static constexpr int64_t kUninitialized = -1;

  struct Options {
    const GroupedOptimizer* optimizer = nullptr;  // these two outlive it
    const SyncPolicy* policy = nullptr;
    const ParameterSpecs* parameters = nullptr;  // of the plan; outlives it
    int num_workers = 1;
    std::vector<bool> members;  // these two as in GradientAggregator::Options
    std::vector<uint64_t> fences;
    // Earlier versions of the weights, for late workers and for replacements.
    int kept_versions = 0;
    bool saves_previous = false;          // in checkpoints, as the last state
    std::shared_ptr<SharedArena> memory;  // for weights, while it has room
    ReplacedMean replaced_mean = ReplacedMean::kAsGradients;
    Summation summation = {};
  };

  BlockState(const Block& block, const Options& options);

  mutable absl::Mutex mu;

  using Waiter = BlockWaiter;
  using Want = BlockWaiter::Want;
  using Ready = ReadyAnswer;

  const Block& block() const { return block_; }
  // [slice]: whether its parameter is frozen; empty: none is.
  const std::vector<bool>& frozen_slices() const { return frozen_slices_; }
  // Updates applied: gathered steps, or else contributions.
  int64_t version() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) { return version_; }
  // The number of the open step's update, from 1: skipped steps do not count.
  int64_t open_update() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  int64_t skipped_steps() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return skipped_steps_;
  }
  GradientAggregator& aggregator() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return aggregator_;
  }
  StepGradient& gradient() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return gradient_;
  }
  size_t num_waiters() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return waiters_.size();
  }

  // Sets version 0: these weights and the optimizer's initial state.
  void SetWeights(const Payload& payload, uint32_t crc32c)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Whether version 0 had these weights.
  bool BeganWith(uint32_t crc32c) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return initial_crc32c_ == crc32c;
  }
  using Load = BlockRuns::Load;
  // Sets the weights and the state after `steps` steps, some of them skipped.
  absl::Status Restore(int64_t steps, int64_t skipped_steps, const Load& load)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  WeightsSnapshot Snapshot() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // True when the snapshot for a checkpoint of `steps` steps is still to be
  // taken; from then on it counts as taken.
  bool BeginCut(int64_t steps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return std::exchange(cut_, steps) != steps;
  }
  // The states for a checkpoint, block.size elements each: the optimizer's and
  // perhaps the previous weights.
  std::vector<SharedBuffer> State() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Averages the contributions and applies `steps` in one pass over memory,
  // with the options' version if none is given.
  void ApplyFused(const OptimizerSteps& steps,
                  const SumAndUpdateVersion* version = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // The two-phase path, for steps that need sums over whole tensors. Average
  // keeps the mean gradient. Direction computes the optimizer's direction and
  // updates the state. The Apply functions and Skip end the step.
  void Average(Ops& ops) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  std::vector<double> GradientSquares(Ops& ops) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The sums that FactoredMoments needs. squares: for each parameter, the sum
  // of squares of its scaled gradient.
  std::vector<double> FactorSums(Ops& ops, float scale,
                                 const std::vector<double>& squares) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // totals: the result of AddFactorSums.
  void UpdateFactors(const OptimizerSteps& steps,
                     const std::vector<std::vector<double>>& totals)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    runs_.UpdateFactors(steps, totals);
  }
  std::vector<double> Direction(Ops& ops, const OptimizerSteps& steps)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void ApplyAveraged(const OptimizerSteps& steps)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // moves: one per parameter.
  void ApplyDirection(Ops& ops, const std::vector<UpdatePhases::Move>& moves)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Ends the step without changing weights or state.
  void Skip() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Limit of waiting calls: for every rank its push, repetitions of this push
  // over new connections, and a pull.
  size_t max_waiters() const {
    return 16 + 4 * static_cast<size_t>(options_.num_workers);
  }
  // ResourceExhausted, without keeping the call, when max_waiters() calls wait
  // already and this one cannot be answered at once.
  absl::Status Wait(Waiter waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Removes the calls that the current version satisfies and those that no
  // later version can satisfy, and appends their responses. Counts the
  // staleness that workers see.
  void TakeAnswered(ShardCounters* counters, std::vector<Ready>* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Removes the calls whose deadline has passed. The error names the missing
  // ranks or, when all ranks have contributed, the shards whose statistics are
  // missing.
  void TakeExpired(int64_t now_micros, const std::vector<int>& missing_shards,
                   std::vector<Ready>* ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

 private:
  using Run = BlockRuns::Run;
  OptimizerStep StepFor(const Run& run, const OptimizerSteps& prepared) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // True for a running average for which no value has come.
  bool Stays(const Run& run) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  const float* newest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return weights_.newest().data();
  }
  // Applies `steps` to all runs and ends the step. averaged: `gradient` is the
  // mean of the contributions.
  void UpdateRuns(ContributionRuns& gradient, const OptimizerSteps& steps,
                  const SumAndUpdateVersion& version, bool averaged)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // crc32c: the checksum of `written`, if the caller knows it.
  void FinishStep(float* written, std::optional<uint32_t> crc32c)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Satisfies(const Waiter& waiter) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  absl::StatusOr<WeightsSnapshot> Answer(const Waiter& waiter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // DeadlineExceeded, with what the block waits for.
  absl::Status StillWaits(const std::vector<int>& missing_shards) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  std::vector<double> GrainSquares(Ops& ops, const float* x) const;

  const Block& block_;
  const Options options_;
  const std::vector<bool> frozen_slices_;
  BlockRuns runs_ ABSL_GUARDED_BY(mu);
  int64_t version_ ABSL_GUARDED_BY(mu) = kUninitialized;
  int64_t skipped_steps_ ABSL_GUARDED_BY(mu) = 0;  // since step 1
  int64_t cut_ ABSL_GUARDED_BY(mu) = 0;            // steps of the last snapshot
  std::optional<uint32_t> initial_crc32c_ ABSL_GUARDED_BY(mu);
  std::optional<uint32_t> crc32c_ ABSL_GUARDED_BY(mu);  // of the weights
  WeightVersions weights_ ABSL_GUARDED_BY(mu);
  std::shared_ptr<EncodedWeights> encoded_ ABSL_GUARDED_BY(mu);  // of newest()
  bool skipped_ ABSL_GUARDED_BY(mu) = false;  // the last step changed nothing
  GradientAggregator aggregator_ ABSL_GUARDED_BY(mu);
  StepGradient gradient_ ABSL_GUARDED_BY(mu);
  SharedBuffer direction_ ABSL_GUARDED_BY(mu);  // two-phase path only, or none
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mu);
};

}  // namespace tributary
