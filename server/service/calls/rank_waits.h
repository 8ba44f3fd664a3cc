// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tributary {

// Measures by sampling how long open steps have waited for each rank: the time
// since the last sample is added to the ranks that are missing now. Samples are
// independent of the steps, so the sums are right on average, and a push costs
// nothing. One thread samples; any thread reads.
class RankWaits {
 public:
  // Upper bound of the time between two samples. A longer pause means that this
  // process itself was stopped.
  static constexpr int64_t kLongestPauseMicros = 1'000'000;

  explicit RankWaits(int num_workers)
      : seconds_(num_workers), waiting_(num_workers) {}

  // `missing`: ranks without which an open step cannot be applied. While more
  // than half of the ranks are missing, the step has only begun and no rank is
  // late.
  void Sample(int64_t now_micros, const std::vector<int>& missing);

  int num_workers() const { return static_cast<int>(seconds_.size()); }
  double seconds(int rank) const { return seconds_[rank]; }
  bool waiting(int rank) const { return waiting_[rank]; }

 private:
  int64_t last_micros_ = -1;  // -1: no sample yet
  std::vector<std::atomic<double>> seconds_;
  std::vector<std::atomic<bool>> waiting_;
};

}  // namespace tributary
