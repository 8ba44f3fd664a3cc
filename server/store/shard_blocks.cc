// SPDX-License-Identifier: Apache-2.0
#include "server/store/shard_blocks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "common/status/status_macros.h"
#include "server/store/rejection.h"

namespace tributary {

ShardBlocks::ShardBlocks(ShardOptions options)
    : options_(std::move(options)),
      count_{training().steps_an_update,
             training().policy->gathers() ? 1 : options_.num_workers},
      phases_(training().optimizer, training().clip_norm,
              training().nonfinite == NonFiniteAction::kSkip,
              training().groups) {
  for (const Block& block : options_.plan->blocks(options_.shard)) {
    blocks_.push_back(std::make_unique<BlockState>(
        block, BlockState::Options{
                   .optimizer = &phases_.optimizer(),
                   .policy = training().policy.get(),
                   .parameters = &options_.plan->parameters(),
                   .num_workers = options_.num_workers,
                   .members = MembersOf(block),
                   .fences = options_.fences,
                   .kept_versions = TRIBUTARY_MUTATED("previous-dropped")
                                        ? 0
                                        : training().kept_versions,
                   .saves_previous = training().saves_previous,
                   .memory = options_.memory,
                   .replaced_mean = training().replaced_mean,
                   .summation = training().summation}));
  }
}

std::vector<bool> ShardBlocks::MembersOf(const Block& block) const {
  std::vector<bool> members;
  if (!options_.mesh || block.holders == Holders()) return members;
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    members.push_back(options_.mesh->Holds(rank, block.holders));
  }
  return members;
}

LearningRates ShardBlocks::RatesLocked(BlockState& block) const {
  if (const LearningRates& sent = block.aggregator().learning_rates();
      !sent.empty()) {
    return sent;
  }
  const int64_t step = block.version() / count_.updates_a_step;
  return phases_.optimizer().RatesAt(step, training().learning_rate(step));
}

// All blocks on all servers reach the same versions, so their snapshots at one
// version are one consistent state of the job.
void ShardBlocks::CutIfDueLocked(BlockState& block) {
  const int64_t every = training().checkpoint_every_steps /
                        count_.steps_an_update * count_.updates_a_step;
  const int64_t late = TRIBUTARY_MUTATED("late-cut") && options_.shard == 1
                           ? count_.updates_a_step
                           : 0;
  const int64_t version = block.version() - late;
  if (every == 0 || version % every != 0 || version == 0) return;
  CutLocked(block, std::min(count_.StepsIn(version), training().total_steps));
}

absl::Status ShardBlocks::CutAll(int64_t steps) {
  if (!blocks_.empty() && !options_.callbacks.on_checkpoint) {
    return absl::FailedPreconditionError("this plan writes no checkpoints");
  }
  for (auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    const int64_t wanted = count_.VersionAfter(steps);
    if (block->version() != wanted) {
      const std::string why =
          absl::StrCat("block ", block->block().index, " has version ",
                       block->version(), "; wanted that after step ", steps);
      return block->version() < wanted ? absl::UnavailableError(why)
                                       : absl::FailedPreconditionError(why);
    }
    CutLocked(*block, steps);
  }
  return absl::OkStatus();
}

void ShardBlocks::CutLocked(BlockState& block, int64_t steps) {
  if (!block.BeginCut(steps)) return;
  const std::vector<SharedBuffer> buffers = block.State();
  std::vector<const float*> state;
  for (const SharedBuffer& buffer : buffers) state.push_back(buffer.data());
  options_.callbacks.on_checkpoint({.steps = steps,
                                    .skipped_steps = block.skipped_steps(),
                                    .block = &block.block(),
                                    .weights = block.Snapshot().weights,
                                    .state = std::move(state)});
}

absl::Status ShardBlocks::Restore(int64_t contributions, int64_t skipped_steps,
                                  const LoadBlock& load) {
  for (auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    TRIBUTARY_RETURN_IF_ERROR(
        block->Restore(contributions, skipped_steps, load));
  }
  return absl::OkStatus();
}

absl::StatusOr<RankProgress> ShardBlocks::ReadClock(int rank,
                                                    uint64_t incarnation,
                                                    bool recomputes) {
  RankProgress progress;
  for (auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    if (!TRIBUTARY_MUTATED("no-fence-at-clock") &&
        !block->aggregator().Fence(rank, incarnation, recomputes)) {
      ++counters_.rejected;
      return FencedError(rank);
    }
    RankProgress here;
    here.initialized = block->version() != BlockState::kUninitialized;
    if (block->aggregator().IsMember(rank)) {
      here.steps = here.begun = block->aggregator().contributed().steps(rank);
    }
    progress.Add(here);
  }
  return progress;
}

absl::Status ShardBlocks::CheckFence(int block, int rank,
                                     uint64_t incarnation) const {
  BlockState& checked = *blocks_[block];
  absl::MutexLock lock(&checked.mu);
  return checked.aggregator().IsFenced(rank, incarnation) ? FencedError(rank)
                                                          : absl::OkStatus();
}

uint64_t ShardBlocks::waiting_calls() const {
  uint64_t calls = 0;
  for (const auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    calls += block->num_waiters();
  }
  return calls;
}

uint64_t ShardBlocks::held_bytes() const {
  uint64_t bytes = 0;
  for (const auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    bytes += block->gradient().held_bytes();
  }
  return bytes;
}

int64_t ShardBlocks::MinVersion() const {
  int64_t version = INT64_MAX;
  for (const auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    version = std::min(version, block->version());
  }
  return blocks_.empty() ? 0 : version;
}

int64_t ShardBlocks::MaxVersion() const {
  int64_t version = 0;
  for (const auto& block : blocks_) {
    absl::MutexLock lock(&block->mu);
    version = std::max(version, block->version());
  }
  return version;
}

std::vector<int> ShardBlocks::MissingRanks() const {
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
    if (training().policy->MayPull(aggregator.applied(), foremost)) continue;
    for (int rank : aggregator.MissingRanks()) {
      if (clock.steps(rank) == clock.Min()) missing.insert(rank);
    }
  }
  return {missing.begin(), missing.end()};
}

}  // namespace tributary
