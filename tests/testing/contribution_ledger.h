#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace tributary::testing {

// Follows what a server says about the contributions to one block and knows
// what it may not say: that it has counted one twice, or out of order, or one
// of an incarnation that was fenced. Every function is Internal when it was
// wrong.
class ContributionLedger {
 public:
  struct Options {
    int workers = 1;
    int64_t steps = 0;  // finished before the first
    // A worker may leave out steps that were closed without it.
    bool may_skip = false;
  };

  explicit ContributionLedger(const Options& options);

  // A contribution was counted, or answered as the repetition of one that was.
  absl::Status Counted(uint32_t rank, uint64_t incarnation, int64_t step);
  absl::Status Repeated(uint32_t rank, uint64_t incarnation, int64_t step);
  // From here on no earlier incarnation of the rank may be counted.
  void Fence(uint32_t rank, uint64_t incarnation);

  // This incarnation may give the rank's last step anew: a step that was still
  // open was dropped.
  void MayComeAgain(uint32_t rank, uint64_t incarnation);

  // How many steps of the rank were counted; with may_skip, how far it came.
  int64_t steps(uint32_t rank) const { return ranks_[rank].next; }

 private:
  struct Rank {
    int64_t next = 0;
    uint64_t fence = 0;
    uint64_t counted_by = 0;   // the last one's incarnation
    uint64_t comes_again = 0;  // an incarnation, which has not counted yet
  };

  const bool may_skip_;
  std::vector<Rank> ranks_;
};

}  // namespace tributary::testing
