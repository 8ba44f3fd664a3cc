// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/reference_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/optimizer/optimizer.h"
#include "common/plan/partition_plan.h"
#include "common/update/factored_moments.h"

namespace tributary::testing {
namespace {

using Tensors = ReferenceRun::Tensors;

int64_t Size(const std::vector<float>& tensor) {
  return static_cast<int64_t>(tensor.size());
}

// Pointers to the states of one parameter.
std::vector<float*> StatesOf(std::vector<Tensors>& state, size_t parameter) {
  std::vector<float*> pointers;
  for (Tensors& tensors : state) pointers.push_back(tensors[parameter].data());
  return pointers;
}

}  // namespace

ReferenceRun::ReferenceRun(Options options)
    : options_(std::move(options)), ops_(CreateCpuOps()) {
  const Optimizer optimizer(options_.optimizer);
  auto first = std::make_unique<Version>();
  first->weights = options_.initial;
  first->state.assign(optimizer.state_names().size(), options_.initial);
  for (size_t p = 0; p < first->weights.size(); ++p) {
    optimizer.InitializeState(Size(first->weights[p]), first->weights[p].data(),
                              StatesOf(first->state, p).data());
  }
  if (options_.delay > 0) first->state.push_back(options_.initial);
  versions_.push_back(std::move(first));
}

const ReferenceRun::Version& ReferenceRun::After(int64_t steps) {
  while (static_cast<int64_t>(versions_.size()) <= steps) {
    const auto step = static_cast<int64_t>(versions_.size()) - 1;
    const Version& now = *versions_.back();
    const Version& late =
        *versions_[std::max<int64_t>(0, step - options_.delay)];
    auto next = std::make_unique<Version>(Next(now, late, step));
    if (options_.delay > 0) next->state.back() = now.weights;
    versions_.push_back(std::move(next));
  }
  return *versions_[steps];
}

Tensors ReferenceRun::MeanGradient(const Tensors& weights, int64_t step) {
  uint64_t all_samples = 0;
  for (int r = 0; r < options_.workers; ++r) {
    all_samples += options_.samples(static_cast<uint32_t>(r), step);
  }
  std::vector<Tensors> gradients;
  std::vector<float> shares;
  for (int r = 0; r < options_.workers; ++r) {
    const auto rank = static_cast<uint32_t>(r);
    const uint64_t samples = options_.samples(rank, step);
    if (samples == 0) continue;
    shares.push_back(static_cast<float>(static_cast<double>(samples) /
                                        static_cast<double>(all_samples)));
    gradients.push_back(weights);  // for the shapes
    options_.gradient(rank, step, weights, &gradients.back());
  }
  Tensors mean = weights;
  for (size_t p = 0; p < mean.size(); ++p) {
    std::fill(mean[p].begin(), mean[p].end(), 0.0f);
    std::vector<const float*> parts;
    for (const Tensors& gradient : gradients) {
      parts.push_back(gradient[p].data());
    }
    if (parts.empty()) continue;
    ops_->WeightedSum(Size(mean[p]), static_cast<int>(parts.size()),
                      parts.data(), shares.data(), mean[p].data());
  }
  return mean;
}

double ReferenceRun::Square(const std::vector<float>& tensor) {
  std::vector<double> grains((tensor.size() + kGrainElements - 1) /
                             kGrainElements);
  ops_->GrainSquares(Size(tensor), kGrainElements, tensor.data(),
                     grains.data());
  double sum = 0;
  for (double grain : grains) sum += grain;
  return sum;
}

void ReferenceRun::MakeFactoredDirection(size_t parameter,
                                         const OptimizerStep& prepared,
                                         const std::vector<float>& gradient,
                                         const std::vector<float*>& state,
                                         std::vector<float>* direction) {
  FactoredMoments moments(options_.parameters[parameter], 0, Size(gradient));
  moments.Restore(state[0], {state[1], moments.columns().size()});
  std::vector<double> sums;
  const double scale = prepared.gradient_scale;
  moments.AppendSums(*ops_, prepared.gradient_scale,
                     FactorUnit(Square(gradient) * scale * scale),
                     gradient.data(), &sums);
  moments.Update(prepared, sums);
  moments.MakeDirection(*ops_, prepared, gradient.data(), direction->data());
  moments.Expand(state[0], state[1]);
}

ReferenceRun::Version ReferenceRun::Next(const Version& now,
                                         const Version& late, int64_t step) {
  const Optimizer optimizer(options_.optimizer);
  const Tensors mean = MeanGradient(late.weights, step);
  double scale = 1;
  if (options_.clip_norm > 0 || options_.skip_nonfinite) {
    double square = 0;
    for (const std::vector<float>& tensor : mean) square += Square(tensor);
    if (options_.skip_nonfinite && !std::isfinite(square)) {
      Version same = now;
      ++same.skipped_steps;
      return same;
    }
    if (options_.clip_norm > 0) {
      scale = std::min(1.0, options_.clip_norm / (std::sqrt(square) + 1e-6));
    }
  }
  const double rate = options_.learning_rate(step);
  const int64_t update = step + 1 - now.skipped_steps;
  const OptimizerStep prepared = optimizer.Prepare(update, rate, scale);
  Version next = now;
  for (size_t p = 0; p < mean.size(); ++p) {
    const int64_t n = Size(mean[p]);
    float* weights = next.weights[p].data();
    const std::vector<float*> state = StatesOf(next.state, p);
    if (!optimizer.makes_directions()) {
      ops_->OptimizerUpdate(prepared, n, mean[p].data(), weights, weights,
                            state.data());
      continue;
    }
    std::vector<float> direction(mean[p].size());
    if (optimizer.Factors(options_.parameters[p])) {
      MakeFactoredDirection(p, prepared, mean[p], state, &direction);
    } else {
      ops_->OptimizerDirection(prepared, n, mean[p].data(), weights,
                               direction.data(), state.data());
    }
    const double move = optimizer.DirectionRate(
        {.step = update,
         .learning_rate = rate,
         .weight_norm = std::sqrt(Square(next.weights[p])),
         .direction_norm = std::sqrt(Square(direction)),
         .elements = n});
    ops_->ApplyDirection(n, static_cast<float>(move), prepared.weight_scale,
                         direction.data(), weights, weights);
  }
  return next;
}

}  // namespace tributary::testing
