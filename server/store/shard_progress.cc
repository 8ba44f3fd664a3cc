// Progress of a ParameterShard: how far it is and which ranks it waits for.
#include <algorithm>
#include <set>

#include "common/base/mutation.h"
#include "server/store/parameter_shard.h"
#include "server/store/rejection.h"

namespace tributary {

absl::StatusOr<ParameterShard::Clock> ParameterShard::ReadClock(
    int rank, uint64_t incarnation, bool recomputes) {
  Clock clock;
  for (auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    if (!TRIBUTARY_MUTATED("no-fence-at-clock") &&
        !block->aggregator().Fence(rank, incarnation, recomputes)) {
      return Refuse(FencedError(rank));
    }
    clock.initialized &= block->version() != BlockState::kUninitialized;
    if (!block->aggregator().IsMember(rank)) continue;
    const int64_t steps = block->aggregator().contributed().steps(rank);
    clock.steps = std::min(clock.steps, steps);
    clock.begun = std::max(clock.begun, steps);
  }
  return clock;
}

uint64_t ParameterShard::waiting_calls() const {
  uint64_t calls = 0;
  for (const auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    calls += block->num_waiters();
  }
  return calls;
}

uint64_t ParameterShard::held_bytes() const {
  uint64_t bytes = 0;
  for (const auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    bytes += block->aggregator().held_bytes();
  }
  return bytes;
}

int64_t ParameterShard::MinVersion() const {
  int64_t version = INT64_MAX;
  for (const auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    version = std::min(version, block->version());
  }
  return blocks_.empty() ? 0 : version;
}

int64_t ParameterShard::MaxVersion() const {
  int64_t version = 0;
  for (const auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    version = std::max(version, block->version());
  }
  return version;
}

std::vector<int> ParameterShard::MissingRanks() const {
  std::set<int> missing;
  for (const auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    // No rank is late while the furthest rank may read the weights that it
    // needs.
    const GradientAggregator& aggregator = block->aggregator();
    const VectorClock& clock = aggregator.contributed();
    int64_t foremost = 0;
    for (int rank = 0; rank < options_.num_workers; ++rank) {
      foremost = std::max(foremost, clock.steps(rank));
    }
    if (training_.policy->MayPull(aggregator.applied(), foremost)) continue;
    for (int rank : aggregator.MissingRanks()) {
      if (clock.steps(rank) == clock.Min()) missing.insert(rank);
    }
  }
  return {missing.begin(), missing.end()};
}

}  // namespace tributary
