// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// A range of steps, counted from 1, with both ends included.
struct StepNumbers {
  int64_t first = 0;
  int64_t last = 0;
};

// "100-105" or "7". InvalidArgument: another text, or the last step is before
// the first one.
absl::StatusOr<StepNumbers> ParseStepNumbers(absl::string_view text);

// Returns the steps as such ranges: "3-5, 9".
std::string StepNumbersText(const std::set<int64_t>& steps);

}  // namespace tributary
