// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tributary {

// A monotonic clock. It is injected, so that tests set the time and never
// sleep.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowMicros() const = 0;

  // The machine's steady clock. It is never destroyed.
  static const Clock& Real();
};

// A clock for tests: time changes only when AdvanceMicros is called.
class ManualClock final : public Clock {
 public:
  int64_t NowMicros() const override { return now_micros_.load(); }
  void AdvanceMicros(int64_t micros) { now_micros_ += micros; }

 private:
  std::atomic<int64_t> now_micros_{0};
};

class SteadyClock final : public Clock {
 public:
  int64_t NowMicros() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

inline const Clock& Clock::Real() {
  static const SteadyClock clock;
  return clock;
}

}  // namespace tributary
