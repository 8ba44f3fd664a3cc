// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/step_range.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tributary {

absl::StatusOr<StepNumbers> ParseStepNumbers(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  StepNumbers steps;
  const bool one = text.find('-') == absl::string_view::npos;
  if (!absl::SimpleAtoi(ends.first, &steps.first) ||
      !absl::SimpleAtoi(one ? ends.first : ends.second, &steps.last) ||
      steps.first < 1 || steps.last < steps.first) {
    return absl::InvalidArgumentError(absl::StrCat(
        "steps are written as 100-105 or 100, counted from 1; got \"", text,
        "\""));
  }
  return steps;
}

std::string StepNumbersText(const std::set<int64_t>& steps) {
  std::vector<std::string> ranges;
  for (auto step = steps.begin(); step != steps.end();) {
    const int64_t first = *step;
    int64_t last = first;
    while (++step != steps.end() && *step == last + 1) last = *step;
    ranges.push_back(first == last ? absl::StrCat(first)
                                   : absl::StrCat(first, "-", last));
  }
  return absl::StrJoin(ranges, ", ");
}

}  // namespace tributary
