// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

namespace tributary {

// Numbers that a field of the job file accepts. An infinite end means no limit.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is excluded
  bool below_max = false;

  bool Contains(double value) const {
    return (above_min ? value > min : value >= min) &&
           (below_max ? value < max : value <= max);
  }
};

constexpr Range kAny{};
constexpr Range kPositive{.min = 0, .above_min = true};
constexpr Range kNotNegative{.min = 0};
constexpr Range kBelowOne{.min = 0, .max = 1, .below_max = true};
constexpr Range kUnit{.min = 0, .max = 1};

}  // namespace tributary
