// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/aggregate/gradient_aggregator.h"
#include "server/store/block_state.h"
#include "server/store/shard_blocks.h"
#include "server/store/statistics/statistics_calls.h"
#include "server/store/two_phase_steps.h"

namespace tributary {

// Owns the weights, optimizer state and version of one shard's slices, with one
// lock per block. It has no sockets and no threads: the service makes the calls
// and passes the time. A call that has to wait is kept as a callback, which is
// called exactly once, outside every lock.
class ParameterShard {
 public:
  using Options = ShardOptions;
  using LoadBlock = ShardBlocks::LoadBlock;

  explicit ParameterShard(Options options)
      : blocks_(std::move(options)), two_phase_(&blocks_) {}

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
  absl::Status Restore(int64_t steps, int64_t skipped_steps,
                       const LoadBlock& load);

  // As in ShardBlocks.
  absl::Status CutAll(int64_t steps) { return blocks_.CutAll(steps); }
  absl::StatusOr<RankProgress> ReadClock(int rank, uint64_t incarnation,
                                         bool recomputes = false) {
    return blocks_.ReadClock(rank, incarnation, recomputes);
  }
  absl::Status CheckFence(int block, int rank, uint64_t incarnation) const {
    return blocks_.CheckFence(block, rank, incarnation);
  }

  // Reads this shard's sums; waits until they are complete.
  void ReadStatistics(int64_t step, StatisticsKind kind,
                      int64_t deadline_micros, StatisticsDone done) {
    two_phase_.calls().Read(step, kind, deadline_micros, std::move(done));
  }
  // Adds another shard's sums. InvalidArgument when their number is wrong.
  absl::Status AddStatistics(int64_t step, StatisticsKind kind, int shard,
                             std::vector<double> values) {
    return two_phase_.AddStatistics(step, kind, shard, std::move(values));
  }

  // Answers every call whose deadline has passed with DeadlineExceeded; the
  // message names the ranks or shards that the call waited for.
  void ExpireWaiters(int64_t now_micros);

  const ShardCounters& counters() const { return blocks_.counters(); }
  const std::vector<std::string>& state_names() const {
    return blocks_.phases().optimizer().state_names();
  }
  std::optional<int64_t> staleness_bound() const {
    return blocks_.training().policy->staleness_bound();
  }
  // As in ShardBlocks.
  int64_t MinVersion() const { return blocks_.MinVersion(); }
  int64_t MaxVersion() const { return blocks_.MaxVersion(); }
  std::vector<int> MissingRanks() const { return blocks_.MissingRanks(); }
  uint64_t waiting_calls() const { return blocks_.waiting_calls(); }
  uint64_t held_bytes() const { return blocks_.held_bytes(); }

 private:
  const ShardOptions& options() const { return blocks_.options(); }
  BlockState& block(int index) { return *blocks_.blocks()[index]; }
  // Checks a contribution. Computes crc32c if it came without one.
  absl::Status CheckContribution(const BlockState& block,
                                 Contribution* contribution);
  // Names the block's element `at`: the parameter and the index within it.
  std::string PlaceOf(const Block& block, int64_t at) const;
  // The answer to a gradient whose unit at element `at` cannot be decoded.
  absl::Status Malformed(const Block& block, const Contribution& c, int64_t at);
  // Counts a gradient that is not finite at element `at`, and then accepts it,
  // refuses it or fails the job, as the job says.
  absl::Status NotFinite(const Block& block, const Contribution& c, int64_t at);
  // The answer to a contribution; `sent` has no payload.
  absl::Status Verdict(BlockState& block, const Contribution& sent,
                       GradientAggregator::Verdict verdict)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mu);
  absl::Status Refuse(absl::Status status);
  // Applies the open step, or computes the statistics that it needs first.
  void CompleteBlockLocked(BlockState& block, int64_t base_version,
                           std::vector<double>* statistics)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mu);
  void Ask(int index, BlockState::Waiter waiter);

  ShardBlocks blocks_;
  TwoPhaseSteps two_phase_;
};

}  // namespace tributary
