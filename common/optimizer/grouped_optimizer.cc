// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/grouped_optimizer.h"

#include <utility>

#include "common/base/check.h"

namespace tributary {

GroupedOptimizer::GroupedOptimizer(const OptimizerOptions& options,
                                   std::vector<ParameterGroup> groups)
    : groups_(std::move(groups)) {
  optimizers_.emplace_back(options);
  for (const ParameterGroup& group : groups_) {
    optimizers_.emplace_back(group.optimizer);
    TRIBUTARY_CHECK(optimizers_.back().SharesStates(optimizers_[0]));
  }
}

int GroupedOptimizer::GroupOf(const ParameterSpec& parameter) const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].Names(parameter)) return static_cast<int>(i) + 1;
  }
  return 0;
}

bool GroupedOptimizer::IsFrozen(const ParameterSpec& parameter) const {
  const int group = GroupOf(parameter);
  return group > 0 && groups_[group - 1].frozen;
}

LearningRates GroupedOptimizer::RatesAt(int64_t step, double first) const {
  LearningRates rates = {first};
  for (const ParameterGroup& group : groups_) {
    rates.push_back(group.learning_rate(step));
  }
  return rates;
}

OptimizerSteps GroupedOptimizer::Prepare(int64_t step,
                                         const LearningRates& rates,
                                         double gradient_scale) const {
  TRIBUTARY_CHECK(rates.size() == optimizers_.size());
  OptimizerSteps steps;
  for (size_t group = 0; group < rates.size(); ++group) {
    steps.push_back(
        optimizers_[group].Prepare(step, rates[group], gradient_scale));
  }
  return steps;
}

bool GroupedOptimizer::StepsAlike(const ParameterSpec& a,
                                  const ParameterSpec& b) const {
  const int group = GroupOf(a);
  return group == GroupOf(b) && optimizers_[group].StepsAlike(a, b);
}

}  // namespace tributary
