#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/step_count.h"
#include "common/checkpoint/block_cut.h"
#include "common/plan/partition_plan.h"
#include "common/update/update_phases.h"
#include "common/wire/shared_buffer.h"
#include "kernels/optimizer.h"
#include "server/aggregate/gradient_aggregator.h"
#include "server/store/block_state.h"
#include "server/store/shard_counters.h"
#include "server/store/shard_training.h"
#include "server/store/statistics_exchange.h"

namespace tributary {

class Ops;

// Owns the weights, optimizer state and version of one shard's slices, with one
// lock per block. It has no sockets and no threads: the service makes the calls
// and passes the time. A call that has to wait is kept as a callback, which is
// called exactly once, outside every lock.
class ParameterShard {
 public:
  // Limit of waiting calls for statistics. Each of the most servers that a job
  // may have asks for two sums, and asks again when its connection broke.
  static constexpr size_t kMaxStatisticsWaiters = 1024;

  struct Options {
    const PartitionPlan* plan = nullptr;  // outlives the shard
    int shard = 0;
    int num_workers = 1;
    // The workers' mesh; default: every worker holds all parameters.
    std::optional<DeviceMesh> mesh;
    ShardTraining training;
    Ops* ops = nullptr;  // the CPU's; outlives the shard
    const tributary::Clock* clock =
        &tributary::Clock::Real();  // measures how long updates take
    std::function<void(const std::string& why)> on_fatal;
    // Takes a block's snapshot for a checkpoint, under the block's lock.
    std::function<void(const BlockCut&)> on_checkpoint;
    // Called when this shard's statistics are complete: fetches the other
    // shards' statistics and gives them to AddStatistics. Called outside every
    // lock; unused with one shard.
    std::function<void(int64_t step, StatisticsKind kind)> fetch_statistics;
  };
  using StatisticsDone =
      std::function<void(absl::StatusOr<std::vector<double>>)>;

  explicit ParameterShard(Options options);

  // Adds a contribution; `done` gets the weights after its step. Errors: see
  // PushPull in parameter_service.proto. Verifies the payload's checksum.
  void PushPull(int block, Contribution contribution, int64_t deadline_micros,
                const WeightsDone& done);
  // Weights of version min_version or later.
  void Pull(int block, int64_t min_version, int64_t deadline_micros,
            WeightsDone done);
  // The weights after exactly `version` updates. OutOfRange when they are no
  // longer kept.
  void PullExact(int block, int64_t version, int64_t deadline_micros,
                 WeightsDone done);
  // The weights that a worker may read after `finished` steps, as after its
  // push.
  void PullFinished(int block, int64_t finished, int64_t deadline_micros,
                    WeightsDone done);
  absl::Status Initialize(int block, uint32_t crc32c, const Payload& payload);

  // Fills every block with its values after `steps` steps of the job. Call it
  // before any other call.
  using LoadBlock = std::function<absl::Status(
      const Block&, float* weights, const std::vector<float*>& state)>;
  absl::Status Restore(int64_t steps, const LoadBlock& load);

  struct Clock {
    bool initialized = true;    // every block has weights
    int64_t steps = INT64_MAX;  // contributed to all of the rank's blocks
    int64_t begun = 0;          // contributed to at least one of them
  };
  // Fences the rank's earlier incarnations, so that the returned clock stays
  // valid for this one. `recomputes`: see GradientAggregator::Fence.
  // FailedPrecondition: there is a later incarnation.
  absl::StatusOr<Clock> ReadClock(int rank, uint64_t incarnation,
                                  bool recomputes = false);

  // Reads this shard's sums; waits until they are complete.
  void ReadStatistics(int64_t step, StatisticsKind kind,
                      int64_t deadline_micros, StatisticsDone done);
  // Adds another shard's sums. InvalidArgument when their number is wrong.
  absl::Status AddStatistics(int64_t step, StatisticsKind kind, int shard,
                             std::vector<double> values);

  // Answers every call whose deadline has passed with DeadlineExceeded; the
  // message names the ranks or shards that the call waited for.
  void ExpireWaiters(int64_t now_micros);

  const ShardCounters& counters() const { return counters_; }
  const std::vector<std::string>& state_names() const {
    return phases_.optimizer().state_names();
  }
  int64_t MinVersion() const;
  int64_t MaxVersion() const;
  // The ranks that block a waiting worker, in any block.
  std::vector<int> MissingRanks() const;
  std::optional<int64_t> staleness_bound() const {
    return training_.policy->staleness_bound();
  }
  uint64_t waiting_calls() const;
  uint64_t held_bytes() const;

 private:
  struct StatisticsWaiter {
    int64_t step;
    StatisticsKind kind;
    int64_t deadline_micros;
    StatisticsDone done;
  };

  absl::Status CheckContribution(const BlockState& block,
                                 const Contribution& contribution);
  absl::Status CheckFinite(const Block& block, const Contribution& c);
  absl::Status Verdict(const BlockState& block, uint32_t rank, int64_t step,
                       GradientAggregator::Verdict verdict, int64_t wanted);
  std::vector<bool> MembersOf(const Block& block) const;
  absl::Status Refuse(absl::Status status);
  // Applies the open step, or computes the statistics that it needs first.
  void CompleteBlockLocked(BlockState& block, int64_t base_version,
                           std::vector<double>* statistics)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mu);
  void CutLocked(BlockState& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mu);
  void Ask(int block, BlockState::Waiter waiter);
  void OfferStatistics(int64_t step, StatisticsKind kind, int block,
                       const std::vector<double>& values);
  void ContinueStep(int64_t step, StatisticsKind kind);
  void StartTrustRatio(int64_t step, double gradient_scale);
  void ApplyEverywhere(int64_t step, double gradient_scale,
                       const std::vector<double>* direction_rates);
  void SkipEverywhere();
  void AnswerStatistics();

  const Options options_;
  const ShardTraining& training_ = options_.training;
  const StepCount count_;
  const UpdatePhases phases_;
  std::vector<std::unique_ptr<BlockState>> blocks_;
  ShardCounters counters_;

  mutable absl::Mutex exchange_mu_;  // taken alone, never with a block's
  StatisticsExchange exchange_ ABSL_GUARDED_BY(exchange_mu_);
  std::vector<StatisticsWaiter> statistics_waiters_
      ABSL_GUARDED_BY(exchange_mu_);
};

}  // namespace tributary
