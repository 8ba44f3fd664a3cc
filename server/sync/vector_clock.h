#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tributary {

// Counts, for each worker, the steps that are settled: contributed, or closed
// without its contribution.
class VectorClock {
 public:
  explicit VectorClock(int num_workers, int64_t steps = 0)
      : steps_(num_workers, steps) {}

  int num_workers() const { return static_cast<int>(steps_.size()); }
  int64_t steps(int worker) const { return steps_[worker]; }
  void Advance(int worker) { ++steps_[worker]; }
  // Its last step is not settled after all.
  void Retreat(int worker) { --steps_[worker]; }
  // No effect on a worker that is further.
  void AdvanceAllTo(int64_t steps) {
    for (int64_t& s : steps_) s = std::max(s, steps);
  }

  // Of the slowest worker.
  int64_t Min() const {
    return *std::min_element(steps_.begin(), steps_.end());
  }
  // Workers that have settled step `step` (from 0).
  int Past(int64_t step) const {
    return static_cast<int>(
        std::count_if(steps_.begin(), steps_.end(),
                      [step](int64_t steps) { return steps > step; }));
  }

 private:
  std::vector<int64_t> steps_;
};

}  // namespace tributary
