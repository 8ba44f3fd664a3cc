#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tributary {

// Monotonic time, injected so that tests set it: no test sleeps.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowMicros() const = 0;

  // The machine's steady clock; lives for ever.
  static const Clock& Real();
};

// Stands still until told.
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
