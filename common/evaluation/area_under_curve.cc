// SPDX-License-Identifier: Apache-2.0
#include "common/evaluation/area_under_curve.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace tributary {

double AreaUnderCurve(absl::Span<const float> scores,
                      absl::string_view targets) {
  constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
  const auto is_nan = [](float score) { return std::isnan(score); };
  if (std::any_of(scores.begin(), scores.end(), is_nan)) return kUndefined;
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return scores[a] < scores[b]; });

  // Twice the number of (positive, lower negative) pairs, exact as an integer.
  // Equal scores count as half a pair.
  uint64_t wins_twice = 0, positives = 0, negatives = 0;
  for (size_t begin = 0; begin < order.size();) {
    const float score = scores[order[begin]];
    uint64_t tied[2] = {0, 0};  // negatives, positives
    size_t end = begin;
    while (end < order.size() && scores[order[end]] == score) {
      ++tied[targets[order[end]] != 0];
      ++end;
    }
    wins_twice += tied[1] * (2 * negatives + tied[0]);
    negatives += tied[0];
    positives += tied[1];
    begin = end;
  }
  if (positives == 0 || negatives == 0) return kUndefined;
  return static_cast<double>(wins_twice) /
         (2.0 * static_cast<double>(positives) *
          static_cast<double>(negatives));
}

}  // namespace tributary
