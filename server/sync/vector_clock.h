// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tributary {

// Counts each worker's settled steps. A step is settled for a worker when the
// worker has contributed to it or when it was applied without the worker.
class VectorClock {
 public:
  explicit VectorClock(int num_workers, int64_t steps = 0)
      : steps_(num_workers, steps) {}

  int num_workers() const { return static_cast<int>(steps_.size()); }
  int64_t steps(int worker) const { return steps_[worker]; }
  void Advance(int worker) { ++steps_[worker]; }
  // Takes back the worker's last step.
  void Retreat(int worker) { --steps_[worker]; }
  // Workers that have settled more than `steps` steps keep their count.
  void AdvanceAllTo(int64_t steps) {
    for (int64_t& s : steps_) s = std::max(s, steps);
  }

  // Steps of the slowest worker.
  int64_t Min() const {
    return *std::min_element(steps_.begin(), steps_.end());
  }
  // Number of workers that have settled step `step` (from 0).
  int Past(int64_t step) const {
    return static_cast<int>(
        std::count_if(steps_.begin(), steps_.end(),
                      [step](int64_t steps) { return steps > step; }));
  }

 private:
  std::vector<int64_t> steps_;
};

}  // namespace tributary
