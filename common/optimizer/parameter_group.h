// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/parameter_spec.h"
#include "common/optimizer/optimizer_options.h"

namespace tributary {

// Parameters that are updated differently from the rest
// (training.parameter_groups).
struct ParameterGroup {
  // Names, in which * stands for any text, also none.
  std::vector<std::string> parameters;
  // The learning rate of this optimizer is the group's base rate.
  OptimizerOptions optimizer;
  // The rate of each step, from 0, for servers that get no rate with a push.
  std::function<double(int64_t step)> learning_rate;
  bool frozen = false;  // weights and state never change

  // A part of a partitioned parameter belongs to the parameter's group.
  bool Names(const ParameterSpec& parameter) const;
};

// The texts that the pattern's stars stand for in the name, in order. A star
// stands for any text, also none; all stars except the last take the shortest
// possible text. nullopt: the name does not match.
std::optional<std::vector<std::string_view>> StarsOf(std::string_view pattern,
                                                     std::string_view name);

// True when the name matches the pattern.
bool MatchesPattern(std::string_view pattern, std::string_view name);

// The learning rates of one step: that of the parameters in no group, then that
// of each group.
using LearningRates = std::vector<double>;

}  // namespace tributary
