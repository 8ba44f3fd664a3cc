#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tributary {

// Counts the steps that each worker has contributed.
class VectorClock {
 public:
  explicit VectorClock(int num_workers) : steps_(num_workers, 0) {}

  int num_workers() const { return static_cast<int>(steps_.size()); }
  int64_t steps(int worker) const { return steps_[worker]; }
  void Advance(int worker) { ++steps_[worker]; }

  // Of the slowest worker.
  int64_t Min() const {
    return *std::min_element(steps_.begin(), steps_.end());
  }

 private:
  std::vector<int64_t> steps_;
};

}  // namespace tributary
