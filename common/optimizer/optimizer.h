// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/parameter_spec.h"
#include "common/optimizer/kind_base.h"
#include "common/optimizer/optimizer_options.h"
#include "common/optimizer/optimizer_step.h"

namespace tributary {

// The entry of one kind in the table of kinds: what the kind's file says
// (kind_base.h).
struct OptimizerKind {
  std::string name;
  std::span<const OptimizerField> fields;
  bool makes_direction = false;
  bool factored = false;
  // State names of each rule.
  std::vector<std::vector<std::string>> states;
  int (*variant)(const OptimizerOptions&) = nullptr;
  OptimizerFault (*check)(const OptimizerOptions&) = nullptr;
  decltype(&KindBase::SetFirstState) set_first_state = nullptr;
  decltype(&KindBase::DirectionRate) direction_rate = nullptr;
  void (*prepare)(const OptimizerOptions&, int64_t step, double learning_rate,
                  OptimizerStep*) = nullptr;
};
// The kinds in the order of OptimizerKinds.
const std::vector<OptimizerKind>& AllOptimizerKinds();
// Null: there is no kind of this name.
const OptimizerKind* FindOptimizerKind(std::string_view name);

// The parts of an optimizer besides its loops: the names and initial values of
// its states, and the scalars of each step. The loops over elements are Ops'
// OptimizerUpdate, or OptimizerDirection and ApplyDirection for an optimizer
// that needs norms of whole tensors between them (makes_directions).
class Optimizer {
 public:
  // options.kind must name a kind.
  explicit Optimizer(const OptimizerOptions& options);

  const OptimizerOptions& options() const { return options_; }

  // True when the other optimizer computes by the same rule: the same states
  // and the same phases of a step.
  bool SharesStates(const Optimizer& other) const {
    return kind_ == other.kind_ && variant_ == other.variant_;
  }
  // The names of the states, in the order in which Ops takes them.
  const std::vector<std::string>& state_names() const {
    return kind_->states[variant_];
  }

  // Fills the states for these weights before the first step. state: host
  // arrays of n elements.
  void InitializeState(int64_t n, const float* weight,
                       float* const* state) const;

  // True when the step's length depends on norms of the whole tensor.
  bool makes_directions() const { return kind_->makes_direction; }
  // The factor of a tensor's direction.
  double DirectionRate(const DirectionSize& size) const {
    return kind_->direction_rate(options_, size);
  }
  // True when the parameter's state is factored (factored_moments.h) instead of
  // one value for each element.
  bool Factors(const ParameterSpec& parameter) const {
    return kind_->factored && parameter.shape.size() >= 2 &&
           !parameter.is_running();
  }
  bool factors() const { return kind_->factored; }
  // Values kept for each weight of a matrix; factored state takes next to none.
  int states_per_weight() const {
    return factors() ? 0 : static_cast<int>(state_names().size());
  }

  // The scalars of step `step`, counted from 1. gradient_scale: the clip
  // coefficient.
  OptimizerStep Prepare(int64_t step, double learning_rate,
                        double gradient_scale) const;

  // True when weight decay applies to the parameter.
  bool Decays(const ParameterSpec& parameter) const {
    return !options_.decay_matrices_only || parameter.shape.size() >= 2;
  }
  // The step without weight decay.
  static OptimizerStep WithoutDecay(OptimizerStep step);
  // The step for this parameter. A running average ignores the optimizer: it
  // moves by RunningRate towards the average of the received values, whatever
  // rate, scale and decay are prepared, and its states do not change.
  OptimizerStep StepFor(const ParameterSpec& parameter,
                        const OptimizerStep& prepared) const;
  // The fraction of the distance that a running average moves in a step.
  double RunningRate(const ParameterSpec& parameter) const {
    return options_.takes_running_averages ? 1 : parameter.running_momentum;
  }
  // The weight_scale of a running average's step: 0 when the received value
  // replaces the average.
  float RunningScale(const ParameterSpec& parameter) const {
    return RunningRate(parameter) == 1 ? 0.0f : 1.0f;
  }
  // True when both parameters are updated with equal OptimizerSteps: with the
  // same decay and running momentum.
  bool StepsAlike(const ParameterSpec& a, const ParameterSpec& b) const {
    return Decays(a) == Decays(b) && a.running_momentum == b.running_momentum;
  }

  // The sum of squares of the whole gradient, from the sum of each parameter.
  // Running averages do not count, since their values are not gradients.
  static double GradientSquare(const ParameterSpecs& parameters,
                               const std::vector<double>& squares);
  // PyTorch's clip_grad_norm_ coefficient, from the sum of squares of the whole
  // gradient. 1 when max_norm is 0.
  static double ClipCoefficient(double max_norm, double square);

 private:
  OptimizerOptions options_;
  const OptimizerKind* kind_;
  int variant_;
};

}  // namespace tributary
