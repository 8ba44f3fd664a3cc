#include "server/store/block_state.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/wire/crc32c.h"
#include "kernels/ops.h"
#include "server/aggregate/averaged_tiles.h"

namespace tributary {

BlockState::BlockState(const Block& block, int num_workers,
                       const Optimizer& optimizer)
    : block_(block), weights_(block.size), aggregator_(num_workers) {
  absl::MutexLock lock(&mu);
  for (size_t i = 0; i < optimizer.state_names().size(); ++i) {
    state_.emplace_back(block.size);
  }
}

void BlockState::SetWeights(const Payload& payload,
                            const Optimizer& optimizer) {
  float* weights = Writable();
  payload.CopyTo(weights);
  optimizer.InitializeState(block_.size, weights, StateAt(0).data());
  version_ = 0;
  if (weights != weights_.data()) std::swap(weights_, spare_);
  crc_known_ = false;
}

WeightsSnapshot BlockState::Snapshot() {
  if (!crc_known_) {
    crc32c_ = Crc32c(weights_.data(), block_.bytes());
    crc_known_ = true;
  }
  return {version_, crc32c_, block_.size, weights_};
}

float* BlockState::Writable() {
  if (weights_.Unique()) return weights_.data();
  if (!spare_ || !spare_.Unique()) spare_ = SharedBuffer(block_.size);
  return spare_.data();
}

void BlockState::FinishStep(float* written) {
  if (written != weights_.data()) std::swap(weights_, spare_);
  crc_known_ = false;
  aggregator_.Commit();
  ++version_;
}

std::vector<float*> BlockState::StateAt(int64_t offset) {
  std::vector<float*> state;
  for (const SharedBuffer& buffer : state_) {
    state.push_back(buffer.data() + offset);
  }
  return state;
}

void BlockState::ApplyFused(Ops& ops, const OptimizerStep& step) {
  const float* in = weights_.data();
  float* out = Writable();
  std::vector<float*> state = StateAt(0);
  ForEachAveragedTile(ops, aggregator_, block_.size,
                      [&](int64_t begin, int64_t n, const float* gradient) {
                        ops.OptimizerUpdate(step, n, gradient, in + begin,
                                            out + begin, state.data());
                        for (float*& tensor : state) tensor += n;
                      });
  FinishStep(out);
}

void BlockState::Average(Ops& ops) {
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
    const size_t at = squares.size();
    squares.resize(at + (slice.size() + kGrainElements - 1) / kGrainElements);
    ops.GrainSquares(slice.size(), kGrainElements, x + slice.offset,
                     squares.data() + at);
  }
  return squares;
}

std::vector<double> BlockState::GradientSquares(Ops& ops) const {
  return GrainSquares(ops, gradient_.data());
}

std::vector<double> BlockState::Direction(Ops& ops, const OptimizerStep& step) {
  if (!direction_) direction_ = SharedBuffer(block_.size);
  std::vector<float*> state = StateAt(0);
  ops.LambDirection(step, block_.size, gradient_.data(), weights_.data(),
                    direction_.data(), state.data());
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
  std::vector<float*> state = StateAt(0);
  ops.OptimizerUpdate(step, block_.size, gradient_.data(), weights_.data(), out,
                      state.data());
  FinishStep(out);
}

void BlockState::ApplyDirection(Ops& ops,
                                const std::vector<double>& rate_times_trust) {
  float* out = Writable();
  for (const Slice& slice : block_.slices) {
    ops.ApplyDirection(slice.size(),
                       static_cast<float>(rate_times_trust[slice.parameter]),
                       direction_.data() + slice.offset,
                       weights_.data() + slice.offset, out + slice.offset);
  }
  FinishStep(out);
}

void BlockState::TakeAnswered(std::vector<Ready>* ready) {
  const int64_t version = version_;
  auto waits = [version](const Waiter& w) { return w.min_version > version; };
  auto first = std::stable_partition(waiters_.begin(), waiters_.end(), waits);
  if (first == waiters_.end()) return;
  const WeightsSnapshot snapshot = Snapshot();
  for (auto it = first; it != waiters_.end(); ++it) {
    ready->push_back(
        [done = std::move(it->done), snapshot] { done(snapshot); });
  }
  waiters_.erase(first, waiters_.end());
}

void BlockState::TakeExpired(int64_t now_micros, std::vector<Ready>* ready) {
  auto waits = [now_micros](const Waiter& w) {
    return w.deadline_micros > now_micros;
  };
  auto first = std::stable_partition(waiters_.begin(), waiters_.end(), waits);
  for (auto it = first; it != waiters_.end(); ++it) {
    const absl::Status status = absl::DeadlineExceededError(
        absl::StrCat("step ", version_ + 1, " of shard ", block_.shard,
                     ", block ", block_.index, " waits for rank ",
                     absl::StrJoin(aggregator_.MissingRanks(), ", ")));
    ready->push_back([done = std::move(it->done), status] { done(status); });
  }
  waiters_.erase(first, waiters_.end());
}

}  // namespace tributary
