// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/parameter_spec.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/parameter_group.h"

namespace tributary {

// The scalars of one step: those of group 0, then those of each parameter
// group.
using OptimizerSteps = std::vector<OptimizerStep>;

// The optimizers of a job with parameter groups. Group 0 holds the parameters
// that no group names; a parameter belongs to the first group that names it.
// All groups have optimizers of one kind and variant, so that they agree on the
// states and the phases of a step.
class GroupedOptimizer {
 public:
  // options: of group 0.
  explicit GroupedOptimizer(const OptimizerOptions& options,
                            std::vector<ParameterGroup> groups = {});

  int num_groups() const { return static_cast<int>(optimizers_.size()); }
  // A function of only the parameter's name.
  int GroupOf(const ParameterSpec& parameter) const;
  // Weight and state of the parameter never change, whatever its gradient is.
  // That holds for a running average, too.
  bool IsFrozen(const ParameterSpec& parameter) const;

  const Optimizer& of_group(int group) const { return optimizers_[group]; }
  const Optimizer& For(const ParameterSpec& parameter) const {
    return optimizers_[GroupOf(parameter)];
  }

  // Equal in all groups: as in Optimizer.
  const std::vector<std::string>& state_names() const {
    return optimizers_[0].state_names();
  }
  bool makes_directions() const { return optimizers_[0].makes_directions(); }
  bool factors() const { return optimizers_[0].factors(); }
  bool Factors(const ParameterSpec& parameter) const {
    return optimizers_[0].Factors(parameter);
  }

  // The scheduled rates of step `step`, from 0. first: the rate of group 0.
  LearningRates RatesAt(int64_t step, double first) const;
  // The scalars of step `step`, counted from 1. rates: one for each group.
  // gradient_scale: the clip coefficient.
  OptimizerSteps Prepare(int64_t step, const LearningRates& rates,
                         double gradient_scale) const;
  // The step for this parameter. As Optimizer::StepFor.
  OptimizerStep StepFor(const ParameterSpec& parameter,
                        const OptimizerSteps& prepared) const {
    const int group = GroupOf(parameter);
    return optimizers_[group].StepFor(parameter, prepared[group]);
  }
  // True when both parameters are updated with equal OptimizerSteps.
  bool StepsAlike(const ParameterSpec& a, const ParameterSpec& b) const;

 private:
  std::vector<Optimizer> optimizers_;   // [group]
  std::vector<ParameterGroup> groups_;  // without group 0
};

}  // namespace tributary
