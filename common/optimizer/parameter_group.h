#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/parameter_spec.h"
#include "common/optimizer/optimizer_options.h"

namespace tributary {

// Parameters that are updated otherwise than the rest
// (training.parameter_groups).
struct ParameterGroup {
  // Names, in which * stands for any text, also none.
  std::vector<std::string> parameters;
  // Its learning rate is the group's base rate.
  OptimizerOptions optimizer;
  // The rate of each step, from 0, where the servers get none with a push.
  std::function<double(int64_t step)> learning_rate;
  bool frozen = false;  // weights and state never change

  // A part of a partitioned parameter belongs to the parameter's group.
  bool Names(const ParameterSpec& parameter) const;
};

// True when the name matches the pattern, in which * stands for any text.
bool MatchesPattern(std::string_view pattern, std::string_view name);

// The learning rates of one step: that of the parameters in no group, then that
// of each group.
using LearningRates = std::vector<double>;

}  // namespace tributary
