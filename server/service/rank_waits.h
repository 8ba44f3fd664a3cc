#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tributary {

// How long open steps have waited for each rank, by looking now and then: the
// time since the last look belongs to the ranks that are missing now. Looks at
// any moment find a rank missing as often as it is, so the sums are right on
// average and pushes pay nothing. One thread samples, any reads.
class RankWaits {
 public:
  // A pause between looks counts for no more: this process was stopped itself.
  static constexpr int64_t kLongestPauseMicros = 1'000'000;

  explicit RankWaits(int num_workers)
      : seconds_(num_workers), waiting_(num_workers) {}

  // `missing`: ranks without which an open step cannot go on. While more than
  // half are missing the step has only begun and nobody is late.
  void Sample(int64_t now_micros, const std::vector<int>& missing);

  int num_workers() const { return static_cast<int>(seconds_.size()); }
  double seconds(int rank) const { return seconds_[rank]; }
  bool waiting(int rank) const { return waiting_[rank]; }

 private:
  int64_t last_micros_ = -1;  // -1: no look yet
  std::vector<std::atomic<double>> seconds_;
  std::vector<std::atomic<bool>> waiting_;
};

}  // namespace tributary
