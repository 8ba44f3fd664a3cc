// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace tributary {

// Estimates how far another process's monotonic clock is ahead of this one's,
// from the times of requests and answers (NTP, RFC 5905). The true offset lies
// within the estimate plus or minus half the round trip, so the sample with the
// shortest round trip counts. Because clocks drift, the uncertainty of a sample
// grows by 15 microseconds a second, and a later sample replaces it once the
// later one is at least as certain. Pure: all times are passed in.
class ClockOffset {
 public:
  // In microseconds.
  struct Sample {
    int64_t sent = 0;      // the request, by this clock
    int64_t received = 0;  // the request, by the other clock
    int64_t answered = 0;  // by the other clock
    int64_t returned = 0;  // the answer, by this clock
  };
  struct Estimate {
    int64_t offset_micros = 0;  // the other clock minus this one
    int64_t uncertainty_micros = 0;

    friend bool operator==(const Estimate&, const Estimate&) = default;
  };

  // Ignores a sample that ends before it begins, on either clock, and times
  // outside of 0 to kMaxMicros.
  void Add(const Sample& sample);
  // Empty before the first sample.
  std::optional<Estimate> At(int64_t now_micros) const;

  // About 285 years.
  static constexpr int64_t kMaxMicros = int64_t{1} << 53;

 private:
  std::optional<Estimate> best_;  // at taken_micros_
  int64_t taken_micros_ = 0;
};

}  // namespace tributary
