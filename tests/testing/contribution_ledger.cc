// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/contribution_ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tributary::testing {

ContributionLedger::ContributionLedger(const Options& options)
    : may_skip_(options.may_skip), ranks_(options.workers) {
  for (Rank& rank : ranks_) rank.next = options.steps;
}

absl::Status ContributionLedger::Counted(uint32_t rank, uint64_t incarnation,
                                         int64_t step) {
  Rank& known = ranks_[rank];
  if (incarnation < known.fence) {
    return absl::InternalError(
        absl::StrCat("a contribution of rank ", rank, " to step ", step + 1,
                     " by incarnation ", incarnation, " counts after ",
                     known.fence, " has taken its place"));
  }
  const bool again = incarnation == known.comes_again && step + 1 == known.next;
  known.comes_again = 0;
  if (step < known.next && !again) {
    return absl::InternalError(absl::StrCat("the contribution of rank ", rank,
                                            " to step ", step + 1,
                                            " is counted again"));
  }
  if (step > known.next && !may_skip_) {
    return absl::InternalError(
        absl::StrCat("the contribution of rank ", rank, " to step ", step + 1,
                     " is counted, that to step ", known.next + 1, " was not"));
  }
  known.next = step + 1;
  known.counted_by = incarnation;
  Fence(rank, incarnation);
  return absl::OkStatus();
}

absl::Status ContributionLedger::Repeated(uint32_t rank, uint64_t incarnation,
                                          int64_t step) {
  const Rank& known = ranks_[rank];
  if (incarnation < known.fence) {
    return absl::InternalError(absl::StrCat(
        "rank ", rank, " is answered as incarnation ", incarnation, " of step ",
        step + 1, " after ", known.fence, " has its place"));
  }
  if (step >= known.next) {
    return absl::InternalError(
        absl::StrCat("the contribution of rank ", rank, " to step ", step + 1,
                     " counts as repeated, and was never counted"));
  }
  Fence(rank, incarnation);
  return absl::OkStatus();
}

void ContributionLedger::MayComeAgain(uint32_t rank, uint64_t incarnation) {
  Rank& known = ranks_[rank];
  // An incarnation that asks again may have contributed already.
  if (incarnation > known.counted_by) known.comes_again = incarnation;
}

void ContributionLedger::Fence(uint32_t rank, uint64_t incarnation) {
  ranks_[rank].fence = std::max(ranks_[rank].fence, incarnation);
}

}  // namespace tributary::testing
