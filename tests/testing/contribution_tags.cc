// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/contribution_tags.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tributary::testing {
namespace {

constexpr int64_t kBase = 8;

int64_t TagOf(int rank) { return int64_t{1} << (3 * rank); }

absl::Status Lost(int rank, int64_t step, int64_t after) {
  return absl::InternalError(
      absl::StrCat("the contribution of rank ", rank, " to step ", step + 1,
                   " is missing, that to step ", after + 1, " is there"));
}

}  // namespace

void ContributionTags::Fill(uint32_t rank, int64_t step,
                            absl::Span<float> gradient) const {
  std::fill_n(gradient.begin(), size(), 0.0f);
  gradient[step] = -static_cast<float>(TagOf(static_cast<int>(rank)));
  gradient[steps_] = -1;
}

absl::StatusOr<std::vector<int64_t>> ContributionTags::StepsIn(
    absl::Span<const float> weights) const {
  std::vector<int64_t> steps(workers_, 0);
  int64_t all = 0;
  for (int64_t step = 0; step < steps_; ++step) {
    auto row = static_cast<int64_t>(weights[step]);
    if (static_cast<float>(row) != weights[step] || row < 0 ||
        row >= TagOf(workers_)) {
      return absl::InternalError(absl::StrCat(
          "row ", step, " is ", weights[step], ", which is no sum of tags"));
    }
    for (int rank = 0; rank < workers_; ++rank, row /= kBase) {
      const int64_t times = row % kBase;
      all += times;
      if (times == 0) continue;
      if (times > 1) {
        return absl::InternalError(absl::StrCat("the contribution of rank ",
                                                rank, " to step ", step + 1,
                                                " counts ", times, " times"));
      }
      if (steps[rank] < step) return Lost(rank, steps[rank], step);
      ++steps[rank];
    }
  }
  if (weights[steps_] != static_cast<float>(all)) {
    return absl::InternalError(
        absl::StrCat("the counter says ", weights[steps_], ", the rows ", all));
  }
  return steps;
}

absl::Status ContributionTags::CheckMeans(absl::Span<const float> weights,
                                          int64_t version, int at_least) const {
  const auto is_mean = [&](float row) {
    for (int set = 1; set < 1 << workers_; ++set) {
      const int count = __builtin_popcount(set);
      if (count < at_least) continue;
      const float share = static_cast<float>(1.0 / count);
      float sum = 0;
      for (int rank = 0; rank < workers_; ++rank) {
        if (set & 1 << rank) sum += share * static_cast<float>(TagOf(rank));
      }
      if (sum == row) return true;
    }
    return false;
  };
  for (int64_t step = 0; step < steps_; ++step) {
    if (step < version ? is_mean(weights[step]) : weights[step] == 0) continue;
    return absl::InternalError(absl::StrCat(
        "row ", step, " of version ", version, " is ", weights[step],
        step < version ? ", which is the mean of no " : ", not empty",
        step < version ? absl::StrCat(at_least, " ranks or more") : ""));
  }
  return absl::OkStatus();
}

}  // namespace tributary::testing
