// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/optimizer/optimizer_kinds.h"

namespace tributary {
namespace {

template <typename... Rules>
std::vector<std::vector<std::string>> StatesOf(RuleList<Rules...>) {
  return {{Rules::kStates.begin(), Rules::kStates.end()}...};
}

template <typename... Kinds>
std::vector<OptimizerKind> Describe(KindList<Kinds...>) {
  return {{.name = Kinds::kName,
           .fields = Kinds::kFields,
           .makes_direction = Kinds::kMakesDirection,
           .factored = Kinds::kFactored,
           .states = StatesOf(typename Kinds::Rules()),
           .variant = &Kinds::Variant,
           .check = &Kinds::Check,
           .set_first_state = &Kinds::SetFirstState,
           .direction_rate = &Kinds::DirectionRate,
           .prepare = &Kinds::Prepare}...};
}

int IndexOf(const OptimizerKind& kind) {
  return static_cast<int>(&kind - AllOptimizerKinds().data());
}

}  // namespace

const std::vector<OptimizerKind>& AllOptimizerKinds() {
  static const auto* const kinds =
      new std::vector<OptimizerKind>(Describe(OptimizerKinds()));
  return *kinds;
}

const OptimizerKind* FindOptimizerKind(std::string_view name) {
  for (const OptimizerKind& kind : AllOptimizerKinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

Optimizer::Optimizer(const OptimizerOptions& options)
    : options_(options), kind_(FindOptimizerKind(options.kind)) {
  TRIBUTARY_CHECK(kind_ != nullptr);
  variant_ = kind_->variant(options_);
}

void Optimizer::InitializeState(int64_t n, const float* weight,
                                float* const* state) const {
  for (size_t i = 0; i < state_names().size(); ++i) {
    std::fill_n(state[i], n, 0.0f);
  }
  kind_->set_first_state(options_, n, weight, state);
}

OptimizerStep Optimizer::Prepare(int64_t step, double learning_rate,
                                 double gradient_scale) const {
  TRIBUTARY_CHECK(step >= 1);
  OptimizerStep p;
  p.kind = IndexOf(*kind_);
  p.variant = variant_;
  p.makes_direction = kind_->makes_direction;
  p.gradient_scale = static_cast<float>(gradient_scale);
  p.weight_decay = static_cast<float>(options_.weight_decay);
  kind_->prepare(options_, step, learning_rate, &p);
  return p;
}

// A running average w moves towards the received value x by plain SGD on (w -
// x)^2 / 2: the gradient is w - x, so w becomes w - rate (w - x). With rate 1
// it becomes 0 w + x, which is x whatever w was; w - (w - x) would round.
OptimizerStep Optimizer::StepFor(const ParameterSpec& parameter,
                                 const OptimizerStep& prepared) const {
  if (!parameter.is_running()) {
    return Decays(parameter) ? prepared : WithoutDecay(prepared);
  }
  OptimizerStep step;
  step.kind = IndexOf(*FindOptimizerKind("sgd"));
  step.gradient_scale = -1;
  step.weight_scale = RunningScale(parameter);
  step.weight_decay = step.weight_scale;
  step.rate = static_cast<float>(RunningRate(parameter));
  return step;
}

OptimizerStep Optimizer::WithoutDecay(OptimizerStep step) {
  step.weight_decay = 0;
  step.weight_scale = 1;
  return step;
}

double Optimizer::GradientSquare(const ParameterSpecs& parameters,
                                 const std::vector<double>& squares) {
  TRIBUTARY_CHECK(parameters.size() == squares.size());
  double square = 0;
  for (size_t p = 0; p < squares.size(); ++p) {
    if (!parameters[p].is_running()) square += squares[p];
  }
  return square;
}

double Optimizer::ClipCoefficient(double max_norm, double square) {
  if (max_norm <= 0) return 1;
  return std::min(1.0, max_norm / (std::sqrt(square) + 1e-6));
}

}  // namespace tributary
