#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/optimizer_options.h"
#include "common/base/parameter_spec.h"
#include "kernels/optimizer_math.h"

namespace tributary {

class Ops;

// The parts of an optimizer besides its loops: the names and initial values of
// its states, and the scalars of each step. The loops over elements are Ops'
// OptimizerUpdate, or LambDirection and ApplyDirection for an optimizer that
// computes a trust ratio over the whole tensor between them
// (needs_trust_ratio).
class Optimizer {
 public:
  explicit Optimizer(const OptimizerOptions& options);

  const OptimizerOptions& options() const { return options_; }

  // PyTorch's names, in the order in which Ops takes the states. LAMB's names
  // are Adam's; FTRL's are the paper's "z" and "n".
  const std::vector<std::string>& state_names() const { return state_names_; }

  // The value of state i before the first step, for a weight of 0.
  float initial_state(int i) const;

  // Fills the states for these weights before the first step. state: host
  // arrays of n elements. Only FTRL's z depends on the weight: FTRL computes
  // weights from z alone, so z starts at the value that yields the weight.
  void InitializeState(int64_t n, const float* weight,
                       float* const* state) const;

  // True when the step's length depends on norms of the whole tensor.
  bool needs_trust_ratio() const {
    return options_.kind == OptimizerOptions::Kind::kLamb;
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
  // True when the same step updates both parameters.
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

  // LAMB's trust ratio phi(|w|) / |u|, where u is the direction. 1 when either
  // norm is 0.
  static double TrustRatio(const OptimizerOptions& options, double weight_norm,
                           double direction_norm);

 private:
  OptimizerOptions options_;
  UpdateRule rule_;
  std::vector<std::string> state_names_;
};

// Computes the direction w - x of a running average, for LAMB, which keeps a
// step's directions. Applying it with RunningRate gives the same bits as the
// step of Optimizer::StepFor.
void RunningDirection(Ops& ops, int64_t n, const float* average,
                      const float* value, float* direction);

}  // namespace tributary
