#include "server/store/block_state.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/mutation.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c.h"
#include "kernels/ops.h"
#include "server/aggregate/checked_update.h"
#include "server/aggregate/contribution_runs.h"
#include "server/store/rejection.h"

namespace tributary {

BlockState::BlockState(const Block& block, const Options& options)
    : block_(block),
      options_(options),
      weights_(block.size, /*stagger=*/0, options.memory),
      aggregator_({.num_workers = options.num_workers,
                   .gathers = options.policy->gathers(),
                   .drops_late = options.policy->drops_late(),
                   .members = options.members}),
      gradient_(block, &aggregator_, options.sum_group) {
  absl::MutexLock lock(&mu);
  MakeRuns();
}

void BlockState::MakeRuns() {
  const Optimizer& optimizer = *options_.optimizer;
  int64_t elements = 0;  // in state_
  for (const Slice& slice : block_.slices) {
    const ParameterSpec& parameter = (*options_.parameters)[slice.parameter];
    if (runs_.empty() || optimizer.factors() ||
        !optimizer.StepsAlike(*runs_.back().like, parameter)) {
      runs_.push_back({.begin = slice.offset,
                       .like = &parameter,
                       .state_begin = elements,
                       .parameter = slice.parameter});
    }
    runs_.back().end = slice.offset + slice.size();
    if (optimizer.Factors(parameter)) {
      runs_.back().moments.emplace(parameter, slice.begin, slice.end);
    } else {
      elements += slice.size();
    }
  }
  const auto states = static_cast<int>(optimizer.state_names().size());
  for (int i = 0; i < states; ++i) {
    state_.emplace_back(elements, /*stagger=*/i + 1);
  }
}

void BlockState::SetWeights(const Payload& payload, uint32_t crc32c) {
  if (!weights_.Unique()) {
    weights_ = SharedBuffer(block_.size, /*stagger=*/0, options_.memory);
  }
  payload.CopyTo(weights_.data());
  for (const Run& run : runs_) {
    if (run.moments) continue;  // 0 since construction
    options_.optimizer->InitializeState(run.end - run.begin,
                                        weights_.data() + run.begin,
                                        StateAt(run, run.begin).data());
  }
  version_ = 0;
  initial_crc32c_ = crc32c;
  encoded_ = nullptr;
  spare_is_previous_ = false;
  crc32c_ = crc32c;
}

absl::Status BlockState::Restore(int64_t steps, const Load& load) {
  if (options_.optimizer->factors()) {
    TRIBUTARY_RETURN_IF_ERROR(LoadExpanded(load));
  } else {
    std::vector<float*> state;
    for (const SharedBuffer& buffer : state_) state.push_back(buffer.data());
    TRIBUTARY_RETURN_IF_ERROR(load(block_, weights_.data(), state));
  }
  const bool gathers = options_.policy->gathers();
  version_ = gathers ? steps : steps * options_.num_workers;
  spare_is_previous_ = false;
  crc32c_.reset();
  encoded_ = nullptr;
  aggregator_.StartAt(steps);
  return absl::OkStatus();
}

absl::Status BlockState::LoadExpanded(const Load& load) {
  std::vector<SharedBuffer> state;
  std::vector<float*> pointers;
  for (size_t i = 0; i < state_.size(); ++i) {
    pointers.push_back(state.emplace_back(block_.size).data());
  }
  TRIBUTARY_RETURN_IF_ERROR(load(block_, weights_.data(), pointers));
  for (Run& run : runs_) {
    if (!run.moments) {
      const Pointers own = StateAt(run, run.begin);
      for (size_t i = 0; i < state_.size(); ++i) {
        std::copy_n(pointers[i] + run.begin, run.end - run.begin, own[i]);
      }
      continue;
    }
    // The slice may lack some of the columns.
    const auto columns = static_cast<int64_t>(run.moments->columns().size());
    const Block first_row = {
        .shard = block_.shard,
        .size = columns,
        .slices = {{.parameter = run.parameter, .begin = 0, .end = columns}}};
    std::vector<float> weights(columns), rows(columns), averages(columns);
    TRIBUTARY_RETURN_IF_ERROR(
        load(first_row, weights.data(), {rows.data(), averages.data()}));
    run.moments->Restore(pointers[0] + run.begin, averages);
  }
  return absl::OkStatus();
}

std::vector<SharedBuffer> BlockState::State() const {
  if (!options_.optimizer->factors()) return state_;
  std::vector<SharedBuffer> state;
  for (size_t i = 0; i < state_.size(); ++i) state.emplace_back(block_.size);
  for (const Run& run : runs_) {
    if (run.moments) {
      run.moments->Expand(state[0].data() + run.begin,
                          state[1].data() + run.begin);
      continue;
    }
    const Pointers own = StateAt(run, run.begin);
    for (size_t i = 0; i < state_.size(); ++i) {
      std::copy_n(own[i], run.end - run.begin, state[i].data() + run.begin);
    }
  }
  return state;
}

WeightsSnapshot BlockState::Snapshot() {
  if (!crc32c_) crc32c_ = Crc32c(weights_.data(), block_.bytes());
  if (!encoded_ && !block_.answers_floats()) {
    encoded_ = std::make_shared<EncodedWeights>(block_);
  }
  return {version_, *crc32c_, block_.size, weights_, encoded_};
}

float* BlockState::Writable() {
  if (weights_.Unique() && !options_.keep_previous) return weights_.data();
  if (!spare_ || !spare_.Unique()) {
    spare_ = SharedBuffer();  // gives back its memory before more is taken
    spare_ = SharedBuffer(block_.size, /*stagger=*/0, options_.memory);
  }
  return spare_.data();
}

void BlockState::FinishStep(float* written, std::optional<uint32_t> crc32c) {
  spare_is_previous_ = written != weights_.data();
  if (spare_is_previous_) std::swap(weights_, spare_);
  crc32c_ = crc32c;
  encoded_ = nullptr;
  aggregator_.Commit();
  ++version_;
}

void BlockState::Skip() {
  float* out = Writable();
  if (out != weights_.data()) std::copy_n(weights_.data(), block_.size, out);
  FinishStep(out, crc32c_);
}

BlockState::Pointers BlockState::StateAt(const Run& run, int64_t begin) const {
  Pointers state = {};
  for (size_t i = 0; i < state_.size(); ++i) {
    state[i] = state_[i].data() + run.state_begin + (begin - run.begin);
  }
  return state;
}

// Without a sample there is nothing to move a running average towards.
OptimizerStep BlockState::StepFor(const ParameterSpec& parameter,
                                  const OptimizerStep& prepared) const {
  OptimizerStep step = options_.optimizer->StepFor(parameter, prepared);
  if (parameter.is_running() && !aggregator_.has_samples()) step.rate = 0;
  return step;
}

void BlockState::UpdateRuns(ContributionRuns& gradient,
                            const OptimizerStep& step,
                            const SumAndUpdateVersion& version) {
  const float* in = weights_.data();
  float* out = Writable();
  uint32_t crc32c = 0;
  for (const Run& run : runs_) {
    const OptimizerStep own = StepFor(*run.like, step);
    for (int64_t begin = run.begin, n = 0; begin < run.end; begin += n) {
      n = gradient.Next(run.end - begin);
      crc32c = UpdateAndChecksum(version, own,
                                 {.n = n,
                                  .count = gradient.count(),
                                  .parts = gradient.parts(),
                                  .weights = gradient.weights(),
                                  .weight_in = in + begin,
                                  .weight_out = out + begin,
                                  .state = StateAt(run, begin).data()},
                                 crc32c);
    }
  }
  FinishStep(out, crc32c);
}

void BlockState::ApplyFused(const OptimizerStep& step,
                            const SumAndUpdateVersion& version) {
  ContributionRuns contributions = gradient_.Runs();
  UpdateRuns(contributions, step, version);
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
  return GrainSquares(ops, gradient_.data());
}

std::vector<double> BlockState::FactorSums(
    Ops& ops, float scale, const std::vector<double>& squares) const {
  std::vector<double> sums;
  for (const Run& run : runs_) {
    if (!run.moments) continue;
    run.moments->AppendSums(ops, scale, FactorUnit(squares[run.parameter]),
                            gradient_.data() + run.begin, &sums);
  }
  return sums;
}

void BlockState::UpdateFactors(const OptimizerStep& step,
                               const std::vector<std::vector<double>>& totals) {
  for (Run& run : runs_) {
    if (run.moments) run.moments->Update(step, totals[run.parameter]);
  }
}

std::vector<double> BlockState::Direction(Ops& ops, const OptimizerStep& step) {
  if (!direction_) direction_ = SharedBuffer(block_.size);
  for (const Run& run : runs_) {
    const float* weight = weights_.data() + run.begin;
    const float* gradient = gradient_.data() + run.begin;
    float* direction = direction_.data() + run.begin;
    if (run.moments) {
      run.moments->MakeDirection(ops, step, gradient, direction);
      continue;
    }
    // A running average without samples stays.
    const bool stays = run.like->is_running() && !aggregator_.has_samples();
    MakeDirection(ops, *options_.optimizer, *run.like, step,
                  run.end - run.begin, stays ? weight : gradient, weight,
                  direction, StateAt(run, run.begin).data());
  }
  const std::vector<double> weight = GrainSquares(ops, weights_.data());
  const std::vector<double> direction = GrainSquares(ops, direction_.data());
  std::vector<double> pairs;
  for (size_t g = 0; g < weight.size(); ++g) {
    pairs.push_back(weight[g]);
    pairs.push_back(direction[g]);
  }
  return pairs;
}

void BlockState::ApplyAveraged(const OptimizerStep& step) {
  ContributionRuns gradient(block_, gradient_.data());
  UpdateRuns(gradient, step, options_.sum_and_update);
}

void BlockState::ApplyDirection(Ops& ops,
                                const std::vector<UpdatePhases::Move>& moves) {
  constexpr int64_t kTile = 4096;  // stays in the first-level cache
  float* out = Writable();
  uint32_t crc32c = 0;
  for (const Slice& slice : block_.slices) {
    const auto [rate, weight_scale] = moves[slice.parameter];
    const int64_t end = slice.offset + slice.size();
    for (int64_t begin = slice.offset; begin < end; begin += kTile) {
      const int64_t n = std::min(kTile, end - begin);
      ops.ApplyDirection(n, rate, weight_scale, direction_.data() + begin,
                         weights_.data() + begin, out + begin);
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
    return Snapshot();
  }
  if (spare_is_previous_ && version_ - 1 == waiter.value) {
    return WeightsSnapshot{waiter.value, Crc32c(spare_.data(), block_.bytes()),
                           block_.size, spare_,
                           block_.answers_floats()
                               ? nullptr
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
