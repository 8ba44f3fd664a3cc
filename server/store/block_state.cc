// SPDX-License-Identifier: Apache-2.0
#include "server/store/block_state.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/mutation.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"
#include "kernels/ops.h"
#include "server/aggregate/checked_update.h"
#include "server/aggregate/contribution_runs.h"
#include "server/store/rejection.h"

namespace tributary {
namespace {

std::vector<bool> FrozenSlices(const Block& block,
                               const BlockState::Options& options) {
  std::vector<bool> frozen;
  for (const Slice& slice : block.slices) {
    frozen.push_back(
        options.optimizer->IsFrozen((*options.parameters)[slice.parameter]));
  }
  const bool any =
      std::find(frozen.begin(), frozen.end(), true) != frozen.end();
  return any ? frozen : std::vector<bool>();
}

// True for a running average that the received values replace, if the job takes
// their mean in another way than that of gradients.
bool IsReplaced(const BlockRuns::Run& run, const BlockState::Options& options) {
  return options.replaced_mean != ReplacedMean::kAsGradients && !run.frozen &&
         run.like->is_running() &&
         options.optimizer->of_group(run.group).RunningScale(*run.like) == 0;
}

StepGradient::Replaced ReplacedIn(const BlockRuns& runs,
                                  const BlockState::Options& options) {
  StepGradient::Replaced replaced;
  replaced.of_rank_0 = options.replaced_mean == ReplacedMean::kOfRank0;
  for (const BlockRuns::Run& run : runs.runs()) {
    if (!IsReplaced(run, options)) continue;
    replaced.ranges.push_back({run.begin, run.end});
  }
  return replaced;
}

int64_t UpdatesAStep(const BlockState::Options& options) {
  return options.policy->gathers() ? 1 : options.num_workers;
}

}  // namespace

BlockState::BlockState(const Block& block, const Options& options)
    : block_(block),
      options_(options),
      frozen_slices_(FrozenSlices(block, options)),
      runs_(block_, *options.optimizer, *options.parameters),
      weights_(block.size, options.kept_versions, options.memory),
      aggregator_({.num_workers = options.num_workers,
                   .gathers = options.policy->gathers(),
                   .drops_late = options.policy->drops_late(),
                   .members = options.members,
                   .fences = options.fences}),
      gradient_(block, &aggregator_, options.summation.group,
                ReplacedIn(runs_, options)) {}

void BlockState::SetWeights(const Payload& payload, uint32_t crc32c) {
  float* const first = weights_.BeginAgain();
  payload.CopyTo(first);
  runs_.Initialize(first);
  version_ = 0;
  skipped_steps_ = 0;
  initial_crc32c_ = crc32c;
  encoded_ = nullptr;
  skipped_ = false;
  crc32c_ = crc32c;
}

absl::Status BlockState::Restore(int64_t steps, int64_t skipped_steps,
                                 const Load& load) {
  float* const first = weights_.BeginAgain();
  float* const before =
      options_.saves_previous ? weights_.BeginBefore() : nullptr;
  // A part of the block is read for the optimizer's state alone.
  const Load with_previous = [&](const Block& part, float* weights,
                                 std::vector<float*> state) {
    SharedBuffer unused;
    if (before != nullptr && &part != &block_) unused = SharedBuffer(part.size);
    if (before != nullptr) state.push_back(unused ? unused.data() : before);
    return load(part, weights, state);
  };
  TRIBUTARY_RETURN_IF_ERROR(runs_.Restore(with_previous, first));
  version_ = steps * UpdatesAStep(options_);
  skipped_steps_ = TRIBUTARY_MUTATED("skips-forgotten") ? 0 : skipped_steps;
  skipped_ = false;
  crc32c_.reset();
  encoded_ = nullptr;
  aggregator_.StartAt(steps);
  return absl::OkStatus();
}

int64_t BlockState::open_update() const {
  return version_ + 1 - skipped_steps_ * UpdatesAStep(options_);
}

WeightsSnapshot BlockState::Snapshot() {
  if (!crc32c_) crc32c_ = Crc32c(newest(), block_.bytes());
  if (!encoded_ && !block_.answers_floats()) {
    encoded_ = std::make_shared<EncodedWeights>(block_);
  }
  return {version_, *crc32c_, block_.size, weights_.newest(), encoded_};
}

std::vector<SharedBuffer> BlockState::State() const {
  std::vector<SharedBuffer> state = runs_.Expanded();
  if (options_.saves_previous) {
    const SharedBuffer* before = weights_.Before(1);
    state.push_back(before != nullptr ? *before : weights_.newest());
  }
  return state;
}

void BlockState::FinishStep(float* written, std::optional<uint32_t> crc32c) {
  weights_.Finish(written);
  skipped_ = false;
  crc32c_ = crc32c;
  encoded_ = nullptr;
  aggregator_.Commit();
  ++version_;
}

void BlockState::Skip() {
  float* out = weights_.Writable();
  if (out != newest()) std::copy_n(newest(), block_.size, out);
  FinishStep(out, crc32c_);
  skipped_ = true;
  ++skipped_steps_;
}

// Without a sample there is nothing to move a running average towards.
bool BlockState::Stays(const Run& run) const {
  if (!run.like->is_running()) return false;
  return IsReplaced(run, options_) ? !gradient_.HasReplaced()
                                   : !aggregator_.has_samples();
}

OptimizerStep BlockState::StepFor(const Run& run,
                                  const OptimizerSteps& prepared) const {
  OptimizerStep step = options_.optimizer->of_group(run.group).StepFor(
      *run.like, prepared[run.group]);
  if (Stays(run)) {
    step.rate = 0;
    step.weight_scale = 1;
  }
  return step;
}

void BlockState::UpdateRuns(ContributionRuns& gradient,
                            const OptimizerSteps& steps,
                            const SumAndUpdateVersion& version, bool averaged) {
  const float* in = newest();
  float* out = weights_.Writable();
  uint32_t crc32c = 0;
  for (const Run& run : runs_.runs()) {
    const OptimizerStep own = StepFor(run, steps);
    const bool takes_mean =
        !averaged && IsReplaced(run, options_) && !Stays(run);
    for (int64_t begin = run.begin, n = 0; begin < run.end; begin += n) {
      n = gradient.Next(run.end - begin);
      if (run.frozen) {  // its gradient is read and not used
        if (out != in) std::copy_n(in + begin, n, out + begin);
        crc32c = ExtendCrc32c(crc32c, out + begin, n * sizeof(float));
        continue;
      }
      std::array<float, ContributionRuns::kLongest> mean;
      const float *const part = mean.data(), weight = 1;
      if (takes_mean) gradient_.MeanOfReplaced(begin, n, gradient, mean.data());
      crc32c = UpdateAndChecksum(
          version, own,
          {.n = n,
           .count = takes_mean ? 1 : gradient.count(),
           .parts = takes_mean ? &part : gradient.parts(),
           .weights = takes_mean ? &weight : gradient.weights(),
           .weight_in = in + begin,
           .weight_out = out + begin,
           .state = runs_.StateAt(run, begin).data()},
          crc32c);
    }
  }
  FinishStep(out, crc32c);
}

void BlockState::ApplyFused(const OptimizerSteps& steps,
                            const SumAndUpdateVersion* version) {
  ContributionRuns contributions = gradient_.Runs();
  UpdateRuns(contributions, steps,
             version != nullptr ? *version : options_.summation.version,
             /*averaged=*/false);
}

void BlockState::Average(Ops& ops) {
  aggregator_.Close();
  gradient_.Average(ops);
}

std::vector<double> BlockState::GrainSquares(Ops& ops, const float* x) const {
  std::vector<double> squares;
  for (const Slice& slice : block_.slices) {
    AppendGrainSquares(ops, x + slice.offset, slice.size(), &squares);
  }
  return squares;
}

std::vector<double> BlockState::GradientSquares(Ops& ops) const {
  std::vector<double> squares;
  for (size_t i = 0; i < block_.slices.size(); ++i) {
    const Slice& slice = block_.slices[i];
    if (!frozen_slices_.empty() && frozen_slices_[i]) {
      squares.resize(squares.size() + NumGrains(slice.size()));
      continue;
    }
    AppendGrainSquares(ops, gradient_.data() + slice.offset, slice.size(),
                       &squares);
  }
  return squares;
}

std::vector<double> BlockState::FactorSums(
    Ops& ops, float scale, const std::vector<double>& squares) const {
  std::vector<double> sums;
  for (const Run& run : runs_.runs()) {
    if (!run.moments) continue;
    if (run.frozen) {
      sums.resize(sums.size() + run.moments->num_sums());
      continue;
    }
    run.moments->AppendSums(ops, scale, FactorUnit(squares[run.parameter]),
                            gradient_.data() + run.begin, &sums);
  }
  return sums;
}

std::vector<double> BlockState::Direction(Ops& ops,
                                          const OptimizerSteps& steps) {
  if (!direction_) direction_ = SharedBuffer(block_.size);
  for (const Run& run : runs_.runs()) {
    const float* weight = newest() + run.begin;
    const float* gradient = gradient_.data() + run.begin;
    float* direction = direction_.data() + run.begin;
    if (run.frozen) {
      std::fill_n(direction, run.size(), 0.0f);
      continue;
    }
    if (run.moments) {
      run.moments->MakeDirection(ops, steps[run.group], gradient, direction);
      continue;
    }
    const bool stays = Stays(run);
    MakeDirection(ops, options_.optimizer->of_group(run.group), *run.like,
                  steps[run.group], run.size(), stays ? weight : gradient,
                  weight, direction, runs_.StateAt(run, run.begin).data());
  }
  const std::vector<double> weight = GrainSquares(ops, newest());
  const std::vector<double> direction = GrainSquares(ops, direction_.data());
  std::vector<double> pairs;
  for (size_t g = 0; g < weight.size(); ++g) {
    pairs.push_back(weight[g]);
    pairs.push_back(direction[g]);
  }
  return pairs;
}

void BlockState::ApplyAveraged(const OptimizerSteps& steps) {
  ContributionRuns gradient(block_, gradient_.data());
  UpdateRuns(gradient, steps, options_.summation.version, /*averaged=*/true);
}

void BlockState::ApplyDirection(Ops& ops,
                                const std::vector<UpdatePhases::Move>& moves) {
  constexpr int64_t kTile = 4096;  // stays in the first-level cache
  float* out = weights_.Writable();
  uint32_t crc32c = 0;
  for (const Slice& slice : block_.slices) {
    const auto [rate, weight_scale] = moves[slice.parameter];
    const int64_t end = slice.offset + slice.size();
    for (int64_t begin = slice.offset; begin < end; begin += kTile) {
      const int64_t n = std::min(kTile, end - begin);
      ops.ApplyDirection(n, rate, weight_scale, direction_.data() + begin,
                         newest() + begin, out + begin);
      crc32c = ExtendCrc32c(crc32c, out + begin, n * sizeof(float));
    }
  }
  FinishStep(out, crc32c);
}

bool BlockState::Satisfies(const Waiter& waiter) const {
  if (version_ == kUninitialized) return false;
  return waiter.want == Want::kFinished
             ? options_.policy->MayPull(aggregator_.applied(), waiter.value)
             : version_ >= waiter.value;
}

absl::Status BlockState::Wait(Waiter waiter) {
  if (waiters_.size() >= max_waiters() && !Satisfies(waiter)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waiters_.size(), " calls wait for block ", block_.index,
                     " of shard ", block_.shard, ", no more may; try again"));
  }
  waiters_.push_back(std::move(waiter));
  return absl::OkStatus();
}

absl::StatusOr<WeightsSnapshot> BlockState::Answer(const Waiter& waiter) {
  if (waiter.want != Want::kExact || version_ == waiter.value ||
      TRIBUTARY_MUTATED("exact-pull-gets-present")) {
    WeightsSnapshot snapshot = Snapshot();
    snapshot.skipped =
        skipped_ && waiter.want == Want::kFinished && waiter.value == version_;
    return snapshot;
  }
  if (const SharedBuffer* weights = weights_.Before(version_ - waiter.value)) {
    return WeightsSnapshot{
        waiter.value, Crc32c(weights->data(), block_.bytes()), block_.size,
        *weights,
        block_.answers_floats() ? nullptr
                                : std::make_shared<EncodedWeights>(block_)};
  }
  return absl::OutOfRangeError(
      absl::StrCat("version ", waiter.value, " of shard ", block_.shard,
                   ", block ", block_.index, " is gone: it has ", version_));
}

void BlockState::TakeAnswered(ShardCounters* counters,
                              std::vector<Ready>* ready) {
  const auto first = std::stable_partition(
      waiters_.begin(), waiters_.end(),
      [this](const Waiter& w)
          ABSL_NO_THREAD_SAFETY_ANALYSIS { return !Satisfies(w); });
  for (auto it = first; it != waiters_.end(); ++it) {
    if (it->want == Want::kFinished) {
      counters->CountStaleness(
          std::max<int64_t>(0, it->value - aggregator_.applied().Min()));
    }
    ready->push_back(
        [done = std::move(it->done), answer = Answer(*it)] { done(answer); });
  }
  waiters_.erase(first, waiters_.end());
}

absl::Status BlockState::StillWaits(
    const std::vector<int>& missing_shards) const {
  std::string here =
      absl::StrCat("shard ", block_.shard, ", block ", block_.index);
  std::string what = "its initial weights from rank 0";
  std::vector<int> ranks = {0};
  int64_t step = 0;
  if (version_ != kUninitialized) {
    step = aggregator_.applied().Min() + 1;
    here = absl::StrCat("step ", step, " of ", here);
    ranks = aggregator_.MissingRanks();
    what = ranks.empty() ? absl::StrCat("the norms of shard ",
                                        absl::StrJoin(missing_shards, ", "))
                         : absl::StrCat("rank ", absl::StrJoin(ranks, ", "));
  }
  v1::ErrorDetail detail;
  *detail.mutable_wait() =
      WaitForRanks(absl::StrCat(here, ", which waits for ", what),
                   {ranks.begin(), ranks.end()}, step);
  return WithDetail(
      absl::DeadlineExceededError(absl::StrCat(here, " waits for ", what)),
      detail);
}

void BlockState::TakeExpired(int64_t now_micros,
                             const std::vector<int>& missing_shards,
                             std::vector<Ready>* ready) {
  auto waits = [now_micros](const Waiter& w) {
    return w.deadline_micros > now_micros;
  };
  auto first = std::stable_partition(waiters_.begin(), waiters_.end(), waits);
  if (first == waiters_.end()) return;
  const absl::Status status = StillWaits(missing_shards);
  for (auto it = first; it != waiters_.end(); ++it) {
    ready->push_back([done = std::move(it->done), status] { done(status); });
  }
  waiters_.erase(first, waiters_.end());
}

}  // namespace tributary
