// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tributary {

struct HistogramSnapshot {
  struct Bucket {
    double upper_bound = 0;         // inclusive
    uint64_t cumulative_count = 0;  // observations up to upper_bound
  };
  std::vector<Bucket> buckets;  // ascending, without the infinite bucket
  uint64_t count = 0;
  double sum = 0;
};

// Counts observations in fixed buckets. Thread-safe: Observe finds its bucket
// by binary search and does two relaxed atomic additions.
class Histogram {
 public:
  // upper_bounds: ascending, inclusive. Values above the last bound are counted
  // too.
  explicit Histogram(std::vector<double> upper_bounds);

  void Observe(double value);

  // The buckets and the count agree with each other. The sum may miss
  // concurrent observations or include them early.
  HistogramSnapshot Snapshot() const;

  // Bounds from a tenth of a millisecond to a minute, for steps and pauses.
  static std::vector<double> SecondsBounds();

 private:
  const std::vector<double> upper_bounds_;
  std::vector<std::atomic<uint64_t>> counts_;  // one more than bounds
  std::atomic<double> sum_{0};
};

}  // namespace tributary
