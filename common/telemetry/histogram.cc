// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/histogram.h"

#include <algorithm>
#include <utility>

namespace tributary {

Histogram::Histogram(std::vector<double> upper_bounds)
    : upper_bounds_(std::move(upper_bounds)),
      counts_(upper_bounds_.size() + 1) {}

void Histogram::Observe(double value) {
  const auto bucket =
      std::lower_bound(upper_bounds_.begin(), upper_bounds_.end(), value);
  counts_[bucket - upper_bounds_.begin()].fetch_add(1,
                                                    std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

HistogramSnapshot Histogram::Snapshot() const {
  HistogramSnapshot snapshot;
  snapshot.sum = sum_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < counts_.size(); ++i) {
    snapshot.count += counts_[i].load(std::memory_order_relaxed);
    if (i < upper_bounds_.size()) {
      snapshot.buckets.push_back({upper_bounds_[i], snapshot.count});
    }
  }
  return snapshot;
}

std::vector<double> Histogram::SecondsBounds() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
          0.1,    0.25,    0.5,    1,     2.5,    5,     10,   25,    60};
}

}  // namespace tributary
