// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/members/equal_ranks.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tributary {

void EqualRanks::Add(const std::vector<uint32_t>& samples) {
  if (told_) return;
  twins_.resize(samples.size());
  std::string ranks;
  size_t first = 0;
  for (size_t rank = 1; rank < samples.size(); ++rank) {
    if (samples[rank] == 0) continue;
    size_t lowest = 0;
    while (samples[lowest] != samples[rank]) ++lowest;
    Twin& twin = twins_[rank];
    if (lowest == rank) {
      twin = {};
      continue;
    }
    twin = {lowest, twin.rank == lowest ? twin.steps + 1 : 1};
    if (twin.steps < kSteps || (!ranks.empty() && lowest != first)) continue;
    first = lowest;
    absl::StrAppend(&ranks, ", ", rank);
  }
  if (ranks.empty()) return;
  told_ = true;
  notice_ = absl::StrCat(
      "ranks ", first, ranks, " computed equal gradients in ", kSteps,
      " steps in a row, so they seem to train on the same rows; give each rank "
      "rows of its own, for example with cluster.sampler(data)");
}

std::string EqualRanks::TakeNotice() { return std::exchange(notice_, ""); }

}  // namespace tributary
