// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace tributary {

// Upper bounds, inclusive, of the staleness histogram's buckets, in steps. One
// more bucket counts everything above the last bound.
inline constexpr std::array<int64_t, 8> kStalenessBounds = {0, 1,  2,  4,
                                                            8, 16, 32, 64};

// Event counts of a shard since it began to serve.
struct ShardCounters {
  std::atomic<uint64_t> contributions{0};
  std::atomic<uint64_t> duplicates{0};
  std::atomic<uint64_t> conflicts{0};
  std::atomic<uint64_t> rejected{0};
  std::atomic<uint64_t> dropped{0};         // contributions that came too late
  std::atomic<uint64_t> nonfinite{0};       // contributions that are not finite
  std::atomic<uint64_t> skipped_blocks{0};  // skipped because of those
  std::atomic<int64_t> update_micros{0};  // optimizer time, summed over blocks
  // Histogram of how many steps the slowest worker was behind a worker that
  // read weights.
  std::array<std::atomic<uint64_t>, kStalenessBounds.size() + 1> staleness{};
  std::atomic<int64_t> max_staleness{0};
  std::atomic<int64_t> staleness_sum{0};  // summed over all pulls

  void CountStaleness(int64_t steps) {
    size_t bucket = 0;
    while (bucket < kStalenessBounds.size() &&
           steps > kStalenessBounds[bucket]) {
      ++bucket;
    }
    ++staleness[bucket];
    staleness_sum += steps;
    int64_t seen = max_staleness;
    while (steps > seen && !max_staleness.compare_exchange_weak(seen, steps)) {
    }
  }
};

}  // namespace tributary
