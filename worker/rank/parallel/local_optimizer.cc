// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/local_optimizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/plan/partition_plan.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"
#include "spdlog/spdlog.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {
namespace {

// Elements of a block. The block's weights and state stay in the cache.
constexpr int64_t kBlock = 4096;

}  // namespace

uint32_t ExtendChecksumOf(Ops& ops, uint32_t crc, const float* data,
                          int64_t n) {
  const size_t bytes = static_cast<size_t>(n) * sizeof(float);
  if (ops.is_host()) return ExtendCrc32c(crc, data, bytes);
  std::vector<float> host(n);
  ops.CopyOut(host.data(), data, bytes);
  return ExtendCrc32c(crc, host.data(), bytes);
}

absl::StatusOr<std::unique_ptr<LocalOptimizer>> LocalOptimizer::Create(
    Options options) {
  std::unique_ptr<LocalOptimizer> made(new LocalOptimizer(std::move(options)));
  Ops* const ops = made->options_.ops;
  for (const GradientRange& range : made->options_.ranges) {
    auto& states = made->state_.emplace_back();
    auto& moments = made->moments_.emplace_back();
    const ParameterSpec& parameter = made->ParameterOf(range);
    made->group_.push_back(made->phases_.optimizer().GroupOf(parameter));
    made->frozen_.push_back(made->phases_.optimizer().IsFrozen(parameter));
    if (made->phases_.optimizer().Factors(parameter)) {
      moments.emplace(parameter, range.begin, range.end);
    }
    for (size_t i = 0; !moments && i < made->state_names().size(); ++i) {
      TRIBUTARY_ASSIGN_OR_RETURN(
          DeviceArray<float> state,
          DeviceArray<float>::Allocate(ops, range.size()));
      states.push_back(std::move(state));
    }
    if (!made->phases_.makes_directions()) continue;
    TRIBUTARY_ASSIGN_OR_RETURN(DeviceArray<float> direction,
                               DeviceArray<float>::Allocate(ops, range.size()));
    made->direction_.push_back(std::move(direction));
  }
  return made;
}

absl::Status LocalOptimizer::Reset() {
  Ops& ops = *options_.ops;
  skipped_steps_ = 0;
  for (size_t r = 0; r < ranges().size(); ++r) {
    const GradientRange& range = ranges()[r];
    if (moments_[r]) {
      moments_[r].emplace(ParameterOf(range), range.begin, range.end);
      continue;
    }
    const auto bytes = static_cast<size_t>(range.size()) * sizeof(float);
    std::vector<float> weight(range.size());
    ops.CopyOut(weight.data(), Weight(range), bytes);
    std::vector<std::vector<float>> host(state_[r].size(),
                                         std::vector<float>(range.size()));
    std::vector<float*> pointers;
    for (std::vector<float>& state : host) pointers.push_back(state.data());
    phases_.optimizer().of_group(group_[r]).InitializeState(
        range.size(), weight.data(), pointers.data());
    for (size_t i = 0; i < host.size(); ++i) {
      ops.CopyIn(state_[r][i].data(), host[i].data(), bytes);
    }
    TRIBUTARY_RETURN_IF_ERROR(
        SynchronizeDevice(*options_.ops));  // copies from `host` must end here
  }
  return absl::OkStatus();
}

absl::Status LocalOptimizer::Restore(const PlannedCheckpoint& checkpoint,
                                     const std::vector<int>& place_in_plan) {
  skipped_steps_ = checkpoint.skipped_steps();
  for (size_t r = 0; r < ranges().size(); ++r) {
    const GradientRange& range = ranges()[r];
    std::vector<float> host(range.size());
    if (moments_[r]) {
      const int place = place_in_plan[range.parameter];
      std::vector<float> columns(moments_[r]->columns().size());
      TRIBUTARY_RETURN_IF_ERROR(checkpoint.ReadRange(
          /*tensor=*/1, place, range.begin, absl::MakeSpan(host)));
      TRIBUTARY_RETURN_IF_ERROR(checkpoint.ReadRange(
          /*tensor=*/2, place, 0, absl::MakeSpan(columns)));
      moments_[r]->Restore(host.data(), columns);
      continue;
    }
    for (size_t i = 0; i < state_[r].size(); ++i) {
      TRIBUTARY_RETURN_IF_ERROR(checkpoint.ReadRange(
          static_cast<int>(1 + i), place_in_plan[range.parameter], range.begin,
          absl::MakeSpan(host)));
      options_.ops->CopyIn(state_[r][i].data(), host.data(),
                           host.size() * sizeof(float));
      TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*options_.ops));
    }
  }
  return absl::OkStatus();
}

uint32_t LocalOptimizer::StateChecksum() {
  uint32_t crc = Crc32c(nullptr, 0);
  for (size_t r = 0; r < ranges().size(); ++r) {
    for (const float* state : StateOf(r)) {
      crc = ExtendChecksumOf(*options_.ops, crc, state, ranges()[r].size());
    }
    if (!moments_[r]) continue;
    for (absl::Span<const float> part :
         {moments_[r]->rows(), moments_[r]->columns()}) {
      crc = ExtendCrc32c(crc, part.data(), part.size() * sizeof(float));
    }
  }
  return crc;
}

absl::Status LocalOptimizer::Skip(int64_t step, const std::string& parameter) {
  if (std::has_single_bit(static_cast<uint64_t>(++skipped_steps_))) {
    spdlog::warn(
        "the gradient of \"{}\" for step {} is not finite; the step changes "
        "nothing ({} such steps so far)",
        parameter, step, skipped_steps_);
  }
  return absl::OkStatus();
}

absl::Status LocalOptimizer::Cut(
    int64_t steps, size_t range, int place,
    const std::function<void(const BlockCut&)>& take) {
  const GradientRange& r = ranges()[range];
  const auto bytes = static_cast<size_t>(r.size()) * sizeof(float);
  const Block block{
      .index = static_cast<int>(range),
      .size = r.size(),
      .slices = {{.parameter = place, .begin = r.begin, .end = r.end}}};
  BlockCut cut{.steps = steps,
               .skipped_steps = skipped_steps_,
               .block = &block,
               .weights = SharedBuffer(r.size()),
               .state = {}};
  options_.ops->CopyOut(cut.weights.data(), Weight(r), bytes);
  std::vector<SharedBuffer> copies;  // of state that is not in host memory
  if (moments_[range]) {
    copies = {SharedBuffer(r.size()), SharedBuffer(r.size())};
    moments_[range]->Expand(copies[0].data(), copies[1].data());
    cut.state = {copies[0].data(), copies[1].data()};
  }
  for (const float* state : StateOf(range)) {
    if (!options_.ops->is_host()) {
      options_.ops->CopyOut(copies.emplace_back(r.size()).data(), state, bytes);
      state = copies.back().data();
    }
    cut.state.push_back(state);
  }
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*options_.ops));
  take(cut);
  return absl::OkStatus();
}

std::vector<float*> LocalOptimizer::StateOf(size_t range) const {
  std::vector<float*> state;
  for (const DeviceArray<float>& s : state_[range]) state.push_back(s.data());
  return state;
}

absl::StatusOr<bool> LocalOptimizer::UpdateIfFinite(
    const OptimizerSteps& prepared, size_t range) {
  if (frozen_[range]) return true;
  const GradientRange& r = ranges()[range];
  const OptimizerStep step = StepFor(range, prepared);
  const float* gradient = Gradient(r);
  float* weight = Weight(r);
  std::vector<float*> state = StateOf(range);
  // On a device, updates the whole range at once: its threads work on all
  // grains in parallel.
  const bool is_host = options_.ops->is_host();
  const int64_t block = is_host ? kBlock : r.size();
  for (int64_t left = r.size(); left > 0;) {
    const int64_t n = std::min(left, block);
    const int64_t grain = is_host ? n : kGrainElements;
    std::vector<double> squares((n + grain - 1) / grain);
    options_.ops->GrainSquares(n, grain, gradient, squares.data());
    // A failed call leaves zeros, which are finite, so check for faults too.
    TRIBUTARY_RETURN_IF_ERROR(DeviceFault(*options_.ops));
    if (!absl::c_all_of(squares, [](double s) { return std::isfinite(s); })) {
      return false;
    }
    options_.ops->OptimizerUpdate(step, n, gradient, weight, weight,
                                  state.data());
    gradient += n;
    weight += n;
    for (float*& s : state) s += n;
    left -= n;
  }
  return true;
}

OptimizerStep LocalOptimizer::StepFor(size_t range,
                                      const OptimizerSteps& prepared) const {
  const int group = group_[range];
  return phases_.optimizer().of_group(group).StepFor(
      ParameterOf(ranges()[range]), prepared[group]);
}

void LocalOptimizer::UpdateAll(const OptimizerSteps& prepared) {
  for (size_t i = 0; i < ranges().size(); ++i) {
    if (frozen_[i]) continue;
    const GradientRange& r = ranges()[i];
    options_.ops->OptimizerUpdate(StepFor(i, prepared), r.size(), Gradient(r),
                                  Weight(r), Weight(r), StateOf(i).data());
  }
}

absl::StatusOr<std::vector<double>> LocalOptimizer::GradientSquares() {
  std::vector<double> squares;
  for (size_t i = 0; i < ranges().size(); ++i) {
    const GradientRange& r = ranges()[i];
    if (frozen_[i]) {
      squares.resize(squares.size() + NumGrains(r.size()));
    } else {
      AppendGrainSquares(*options_.ops, Gradient(r), r.size(), &squares);
    }
  }
  TRIBUTARY_RETURN_IF_ERROR(DeviceFault(*options_.ops));
  return squares;
}

absl::StatusOr<std::vector<double>> LocalOptimizer::FactorSums(
    double gradient_scale, const std::vector<double>& squares) {
  std::vector<double> sums;
  for (size_t i = 0; i < ranges().size(); ++i) {
    if (!moments_[i]) continue;
    if (frozen_[i]) {
      sums.resize(sums.size() + moments_[i]->num_sums());
      continue;
    }
    const GradientRange& r = ranges()[i];
    moments_[i]->AppendSums(
        *options_.ops, static_cast<float>(gradient_scale),
        FactorUnit(squares[r.parameter] * gradient_scale * gradient_scale),
        Gradient(r), &sums);
  }
  TRIBUTARY_RETURN_IF_ERROR(DeviceFault(*options_.ops));
  return sums;
}

void LocalOptimizer::UpdateFactors(
    const OptimizerSteps& prepared,
    const std::vector<std::vector<double>>& totals) {
  for (size_t i = 0; i < ranges().size(); ++i) {
    if (!moments_[i] || frozen_[i]) continue;
    moments_[i]->Update(prepared[group_[i]], totals[ranges()[i].parameter]);
  }
}

absl::StatusOr<std::vector<double>> LocalOptimizer::Directions(
    const OptimizerSteps& prepared) {
  std::vector<double> pairs;
  for (size_t i = 0; i < ranges().size(); ++i) {
    const GradientRange& r = ranges()[i];
    float* direction = direction_[i].data();
    const OptimizerStep& step = prepared[group_[i]];
    if (frozen_[i]) {
      options_.ops->Fill(r.size(), 0, direction);
    } else if (moments_[i]) {
      moments_[i]->MakeDirection(*options_.ops, step, Gradient(r), direction);
    } else {
      MakeDirection(*options_.ops, phases_.optimizer().of_group(group_[i]),
                    ParameterOf(r), step, r.size(), Gradient(r), Weight(r),
                    direction, StateOf(i).data());
    }
    std::vector<double> weight_squares, direction_squares;
    AppendGrainSquares(*options_.ops, Weight(r), r.size(), &weight_squares);
    AppendGrainSquares(*options_.ops, direction, r.size(), &direction_squares);
    for (size_t g = 0; g < weight_squares.size(); ++g) {
      pairs.push_back(weight_squares[g]);
      pairs.push_back(direction_squares[g]);
    }
  }
  TRIBUTARY_RETURN_IF_ERROR(DeviceFault(*options_.ops));
  return pairs;
}

void LocalOptimizer::ApplyDirections(
    const std::vector<UpdatePhases::Move>& moves) {
  for (size_t i = 0; i < ranges().size(); ++i) {
    const GradientRange& r = ranges()[i];
    const auto [rate, weight_scale] = moves[r.parameter];
    options_.ops->ApplyDirection(r.size(), rate, weight_scale,
                                 direction_[i].data(), Weight(r), Weight(r));
  }
}

}  // namespace tributary
