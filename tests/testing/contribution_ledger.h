// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace tributary::testing {

// Tracks a server's answers about the contributions to one block and detects
// forbidden ones: a contribution counted twice, out of order, or from a fenced
// incarnation. Every function returns Internal for a forbidden answer.
class ContributionLedger {
 public:
  struct Options {
    int workers = 1;
    int64_t steps = 0;  // finished before the first
    // A worker may skip steps that were closed without its contribution.
    bool may_skip = false;
  };

  explicit ContributionLedger(const Options& options);

  // Record that a contribution was counted, or acknowledged as a repetition of
  // a counted one.
  absl::Status Counted(uint32_t rank, uint64_t incarnation, int64_t step);
  absl::Status Repeated(uint32_t rank, uint64_t incarnation, int64_t step);
  // From here on no earlier incarnation of the rank may be counted.
  void Fence(uint32_t rank, uint64_t incarnation);

  // This incarnation may contribute to the rank's last step again, because the
  // earlier contribution to a still open step was dropped.
  void MayComeAgain(uint32_t rank, uint64_t incarnation);

  // Number of the rank's counted steps; with may_skip, the step after the last
  // counted one.
  int64_t steps(uint32_t rank) const { return ranks_[rank].next; }

 private:
  struct Rank {
    int64_t next = 0;
    uint64_t fence = 0;
    uint64_t counted_by = 0;   // incarnation of the last one
    uint64_t comes_again = 0;  // incarnation that may contribute again
  };

  const bool may_skip_;
  std::vector<Rank> ranks_;
};

}  // namespace tributary::testing
