#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tributary {

struct HistogramSnapshot {
  struct Bucket {
    double upper_bound = 0;         // inclusive
    uint64_t cumulative_count = 0;  // of all observations up to it
  };
  std::vector<Bucket> buckets;  // ascending, without the infinite one
  uint64_t count = 0;
  double sum = 0;
};

// Counts observations into fixed buckets, from any thread. Observe finds its
// bucket by halving and makes two relaxed additions.
class Histogram {
 public:
  // upper_bounds: ascending, inclusive; what is above the last counts too.
  explicit Histogram(std::vector<double> upper_bounds);

  void Observe(double value);

  // Buckets and count agree with each other; the sum may be one observation
  // ahead or behind.
  HistogramSnapshot Snapshot() const;

  // A millisecond to a minute, for steps and pauses.
  static std::vector<double> SecondsBounds();
  // 0 to 64, for staleness in steps.
  static std::vector<double> StepsBounds();

 private:
  const std::vector<double> upper_bounds_;
  std::vector<std::atomic<uint64_t>> counts_;  // one more than bounds
  std::atomic<double> sum_{0};
};

}  // namespace tributary
