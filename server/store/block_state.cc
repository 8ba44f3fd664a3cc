#include "server/store/block_state.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/mutation.h"
#include "common/update/update_phases.h"
#include "common/wire/crc32c.h"
#include "kernels/ops.h"
#include "server/aggregate/averaged_tiles.h"
#include "server/store/rejection.h"

namespace tributary {

BlockState::BlockState(const Block& block, const Options& options)
    : block_(block),
      options_(options),
      weights_(block.size),
      aggregator_({.num_workers = options.num_workers,
                   .gathers = options.policy->gathers(),
                   .drops_late = options.policy->drops_late(),
                   .members = options.members}) {
  for (const Slice& slice : block.slices) {
    const ParameterSpec& parameter = (*options_.parameters)[slice.parameter];
    if (runs_.empty() ||
        !options_.optimizer->StepsAlike(*runs_.back().like, parameter)) {
      runs_.push_back({0, &parameter});
    }
    runs_.back().end = slice.offset + slice.size();
  }
  absl::MutexLock lock(&mu);
  for (size_t i = 0; i < options_.optimizer->state_names().size(); ++i) {
    state_.emplace_back(block.size);
  }
}

void BlockState::SetWeights(const Payload& payload, uint32_t crc32c) {
  if (!weights_.Unique()) weights_ = SharedBuffer(block_.size);
  payload.CopyTo(weights_.data());
  options_.optimizer->InitializeState(block_.size, weights_.data(),
                                      StateAt(0).data());
  version_ = 0;
  initial_crc32c_ = crc32c;
  spare_is_previous_ = false;
  crc_known_ = false;
}

void BlockState::Restored(int64_t steps) {
  const bool gathers = options_.policy->gathers();
  version_ = gathers ? steps : steps * options_.num_workers;
  spare_is_previous_ = false;
  crc_known_ = false;
  aggregator_.StartAt(steps);
}

WeightsSnapshot BlockState::Snapshot() {
  if (!crc_known_) {
    crc32c_ = Crc32c(weights_.data(), block_.bytes());
    crc_known_ = true;
  }
  return {version_, crc32c_, block_.size, weights_};
}

float* BlockState::Writable() {
  if (weights_.Unique() && !options_.keep_previous) return weights_.data();
  if (!spare_ || !spare_.Unique()) spare_ = SharedBuffer(block_.size);
  return spare_.data();
}

void BlockState::FinishStep(float* written) {
  spare_is_previous_ = written != weights_.data();
  if (spare_is_previous_) std::swap(weights_, spare_);
  crc_known_ = false;
  aggregator_.Commit();
  ++version_;
}

void BlockState::Skip() {
  float* out = Writable();
  if (out != weights_.data()) std::copy_n(weights_.data(), block_.size, out);
  FinishStep(out);
}

std::vector<float*> BlockState::StateAt(int64_t offset) {
  std::vector<float*> state;
  for (const SharedBuffer& buffer : state_) {
    state.push_back(buffer.data() + offset);
  }
  return state;
}

template <typename Use>
void BlockState::ForEachRun(int64_t begin, int64_t n, Use use) const {
  const int64_t end = begin + n;
  for (const Run& run : runs_) {
    if (begin >= end) return;
    if (run.end <= begin) continue;
    const int64_t count = std::min(run.end, end) - begin;
    use(begin, count, *run.like);
    begin += count;
  }
}

// Without a sample there is nothing to move a running average towards.
OptimizerStep BlockState::StepFor(const ParameterSpec& parameter,
                                  const OptimizerStep& prepared) const {
  OptimizerStep step = options_.optimizer->StepFor(parameter, prepared);
  if (parameter.is_running() && !aggregator_.has_samples()) step.rate = 0;
  return step;
}

void BlockState::ApplyFused(Ops& ops, const OptimizerStep& step) {
  const float* in = weights_.data();
  float* out = Writable();
  std::vector<float*> state = StateAt(0);
  ForEachAveragedTile(
      ops, aggregator_, block_.size,
      [&](int64_t first, int64_t count, const float* gradient) {
        ForEachRun(first, count,
                   [&](int64_t begin, int64_t n, const ParameterSpec& parameter)
                       ABSL_NO_THREAD_SAFETY_ANALYSIS {
                         ops.OptimizerUpdate(StepFor(parameter, step), n,
                                             gradient + (begin - first),
                                             in + begin, out + begin,
                                             state.data());
                         for (float*& tensor : state) tensor += n;
                       });
      });
  FinishStep(out);
}

void BlockState::Average(Ops& ops) {
  aggregator_.Close();
  if (!gradient_) gradient_ = SharedBuffer(block_.size);
  float* mean = gradient_.data();
  ForEachAveragedTile(ops, aggregator_, block_.size,
                      [mean](int64_t begin, int64_t n, const float* gradient) {
                        std::copy_n(gradient, n, mean + begin);
                      });
}

std::vector<double> BlockState::GrainSquares(Ops& ops, const float* x) const {
  std::vector<double> squares;
  for (const Slice& slice : block_.slices) {
    AppendGrainSquares(ops, x + slice.offset, slice.size(), &squares);
  }
  return squares;
}

std::vector<double> BlockState::GradientSquares(Ops& ops) const {
  return GrainSquares(ops, gradient_.data());
}

std::vector<double> BlockState::Direction(Ops& ops, const OptimizerStep& step) {
  if (!direction_) direction_ = SharedBuffer(block_.size);
  ForEachRun(0, block_.size,
             [&](int64_t begin, int64_t n, const ParameterSpec& parameter)
                 ABSL_NO_THREAD_SAFETY_ANALYSIS {
                   const float* weight = weights_.data() + begin;
                   // A running average without samples stays.
                   const bool stays =
                       parameter.is_running() && !aggregator_.has_samples();
                   MakeDirection(ops, *options_.optimizer, parameter, step, n,
                                 stays ? weight : gradient_.data() + begin,
                                 weight, direction_.data() + begin,
                                 StateAt(begin).data());
                 });
  const std::vector<double> weight = GrainSquares(ops, weights_.data());
  const std::vector<double> direction = GrainSquares(ops, direction_.data());
  std::vector<double> pairs;
  for (size_t g = 0; g < weight.size(); ++g) {
    pairs.push_back(weight[g]);
    pairs.push_back(direction[g]);
  }
  return pairs;
}

void BlockState::ApplyAveraged(Ops& ops, const OptimizerStep& step) {
  float* out = Writable();
  const float* in = weights_.data();
  const float* gradient = gradient_.data();
  std::vector<float*> state = StateAt(0);
  ForEachRun(0, block_.size,
             [&](int64_t begin, int64_t n, const ParameterSpec& parameter)
                 ABSL_NO_THREAD_SAFETY_ANALYSIS {
                   ops.OptimizerUpdate(StepFor(parameter, step), n,
                                       gradient + begin, in + begin,
                                       out + begin, state.data());
                   for (float*& tensor : state) tensor += n;
                 });
  FinishStep(out);
}

void BlockState::ApplyDirection(Ops& ops, const std::vector<double>& rates) {
  float* out = Writable();
  for (const Slice& slice : block_.slices) {
    ops.ApplyDirection(slice.size(), static_cast<float>(rates[slice.parameter]),
                       direction_.data() + slice.offset,
                       weights_.data() + slice.offset, out + slice.offset);
  }
  FinishStep(out);
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
    return Snapshot();
  }
  if (spare_is_previous_ && version_ - 1 == waiter.value) {
    return WeightsSnapshot{waiter.value, Crc32c(spare_.data(), block_.bytes()),
                           block_.size, spare_};
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

std::string BlockState::WaitsFor(const std::vector<int>& missing_shards) const {
  const std::string here =
      absl::StrCat("shard ", block_.shard, ", block ", block_.index);
  if (version_ == kUninitialized) {
    return absl::StrCat(here, " waits for its initial weights from rank 0");
  }
  const std::vector<int> ranks = aggregator_.MissingRanks();
  return absl::StrCat(
      "step ", aggregator_.applied().Min() + 1, " of ", here, " waits for ",
      ranks.empty() ? absl::StrCat("the norms of shard ",
                                   absl::StrJoin(missing_shards, ", "))
                    : absl::StrCat("rank ", absl::StrJoin(ranks, ", ")));
}

void BlockState::TakeExpired(int64_t now_micros,
                             const std::vector<int>& missing_shards,
                             std::vector<Ready>* ready) {
  auto waits = [now_micros](const Waiter& w) {
    return w.deadline_micros > now_micros;
  };
  auto first = std::stable_partition(waiters_.begin(), waiters_.end(), waits);
  if (first == waiters_.end()) return;
  const absl::Status status =
      absl::DeadlineExceededError(WaitsFor(missing_shards));
  for (auto it = first; it != waiters_.end(); ++it) {
    ready->push_back([done = std::move(it->done), status] { done(status); });
  }
  waiters_.erase(first, waiters_.end());
}

}  // namespace tributary
