#pragma once

#include <algorithm>
#include <cstdint>

namespace tributary {

// Limits how often the ranks' groups are formed again while no rank makes
// progress. A plain object: time is passed in.
class RegroupLimit {
 public:
  static constexpr int kMost = 20;  // attempts without progress
  static constexpr int64_t kLongestPauseMicros = 10'000'000;

  // `timeout_micros`: how long groups may break without progress.
  explicit RegroupLimit(int64_t timeout_micros)
      : timeout_micros_(timeout_micros) {}

  // Records that a group broke; `step` is the highest step that any rank has
  // begun. False: groups have broken too often, or for too long, without a
  // later step.
  bool Add(int64_t step, int64_t now_micros) {
    if (count_ == 0 || step > step_) {
      count_ = 0;
      since_micros_ = now_micros;
      step_ = step;
    }
    ++count_;
    return count_ <= kMost && now_micros - since_micros_ <= timeout_micros_;
  }

  // Breaks since the last progress.
  int count() const { return count_; }
  int64_t step() const { return step_; }
  int64_t since_micros() const { return since_micros_; }

  // Back-off before the groups are formed again: zero at first, then doubling,
  // because the cause may need time to disappear.
  int64_t PauseMicros() const {
    if (count_ <= 1) return 0;
    return std::min(kLongestPauseMicros,
                    int64_t{100'000} << std::min(count_ - 2, 10));
  }

 private:
  const int64_t timeout_micros_;
  int count_ = 0;
  int64_t step_ = 0;
  int64_t since_micros_ = 0;
};

}  // namespace tributary
