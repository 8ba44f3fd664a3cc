#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace tributary {

// Upper bounds, inclusive, of the staleness histogram, in steps; beyond the
// last is one bucket more.
inline constexpr std::array<int64_t, 8> kStalenessBounds = {0, 1,  2,  4,
                                                            8, 16, 32, 64};

// What happened to a shard since it began to serve.
struct ShardCounters {
  std::atomic<uint64_t> contributions{0};
  std::atomic<uint64_t> duplicates{0};
  std::atomic<uint64_t> conflicts{0};
  std::atomic<uint64_t> rejected{0};
  std::atomic<uint64_t> dropped{0};         // late
  std::atomic<uint64_t> nonfinite{0};       // contributions
  std::atomic<uint64_t> skipped_blocks{0};  // because of such, by block
  std::atomic<int64_t> update_micros{0};    // in the optimizer, by block
  // Steps by which the slowest worker was behind a worker that read weights.
  std::array<std::atomic<uint64_t>, kStalenessBounds.size() + 1> staleness{};
  std::atomic<int64_t> max_staleness{0};
  std::atomic<int64_t> staleness_sum{0};  // over all pulls

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
