#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/optimizer_options.h"
#include "common/base/parameter_spec.h"
#include "kernels/optimizer_math.h"

namespace tributary {

class Ops;

// What an optimizer needs besides its loops: the names and first values of its
// states and the scalars of each step. The loops over elements are Ops'
// OptimizerUpdate, or LambDirection and ApplyDirection when a trust ratio over
// the whole tensor comes between (needs_trust_ratio).
class Optimizer {
 public:
  explicit Optimizer(const OptimizerOptions& options);

  const OptimizerOptions& options() const { return options_; }

  // PyTorch's names, in the order in which Ops takes the states; LAMB's are
  // Adam's, FTRL's are the paper's "z" and "n".
  const std::vector<std::string>& state_names() const { return state_names_; }

  // What state i holds before the first step when the weight is 0.
  float initial_state(int i) const;

  // The states before the first step for these weights; state: host arrays of
  // n. Only FTRL's z depends on the weight: FTRL computes weights from z alone,
  // so z starts where it gives the weight back.
  void InitializeState(int64_t n, const float* weight,
                       float* const* state) const;

  // True when the length of the step depends on norms of the whole tensor.
  bool needs_trust_ratio() const {
    return options_.kind == OptimizerOptions::Kind::kLamb;
  }

  // The scalars of step `step`, from 1. gradient_scale: the clip coefficient.
  OptimizerStep Prepare(int64_t step, double learning_rate,
                        double gradient_scale) const;

  // Whether weight decay counts for a parameter, and a step without it.
  bool Decays(const ParameterSpec& parameter) const {
    return !options_.decay_matrices_only || parameter.shape.size() >= 2;
  }
  static OptimizerStep WithoutDecay(OptimizerStep step);
  // The step for this parameter. That of a running average is no optimizer's:
  // it moves by RunningRate to the average of what has come for it, whatever
  // rate, scale and decay are prepared, and leaves the states alone.
  OptimizerStep StepFor(const ParameterSpec& parameter,
                        const OptimizerStep& prepared) const;
  // How far a running average moves in a step.
  double RunningRate(const ParameterSpec& parameter) const {
    return options_.takes_running_averages ? 1 : parameter.running_momentum;
  }
  // Whether one step serves both parameters.
  bool StepsAlike(const ParameterSpec& a, const ParameterSpec& b) const {
    return Decays(a) == Decays(b) && a.running_momentum == b.running_momentum;
  }

  // The sum of squares of the whole gradient from those of each parameter's:
  // what comes for running averages is no part of it.
  static double GradientSquare(const ParameterSpecs& parameters,
                               const std::vector<double>& squares);
  // PyTorch's clip_grad_norm_ coefficient, for the sum of squares of the whole
  // gradient; 1 when max_norm is 0.
  static double ClipCoefficient(double max_norm, double square);

  // LAMB's phi(|w|) / |u|, 1 when either norm is 0; u is the direction.
  static double TrustRatio(const OptimizerOptions& options, double weight_norm,
                           double direction_norm);

 private:
  OptimizerOptions options_;
  UpdateRule rule_;
  std::vector<std::string> state_names_;
};

// Where LAMB keeps the directions of a step: a running average's is w - x, as
// Optimizer::StepFor says. Taken RunningRate of it, the bits are those of that
// step.
void RunningDirection(Ops& ops, int64_t n, const float* average,
                      const float* value, float* direction);

}  // namespace tributary
