// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"

namespace tributary {

// Limits how often the ranks' groups are formed again while no rank finishes a
// step in between. Steps that are computed again after a rollback count as
// finished. A plain object: time is passed in.
class GroupBreaks {
 public:
  static constexpr int kMost = 20;  // attempts without a finished step
  static constexpr int64_t kLongestPauseMicros = 10'000'000;

  // `timeout_micros`: how long groups may break without a finished step.
  explicit GroupBreaks(int64_t timeout_micros)
      : timeout_micros_(timeout_micros) {}

  // Records that a group broke. `advanced`: some rank has finished a step under
  // the broken plan. Returns false if groups have broken too often, or for too
  // long, without such a step; then they are not formed again.
  bool Add(bool advanced, int64_t now_micros) {
    if (count_ == 0 || advanced) {
      count_ = 0;
      since_micros_ = now_micros;
    }
    ++count_;
    if (count_ > kMost || now_micros - since_micros_ > timeout_micros_) {
      return false;
    }
    broken_micros_ = now_micros;
    return true;
  }
  // Call it when steps were finished since the groups last broke.
  void Forget() { count_ = 0; }
  // Whether the groups are broken and have not been formed again.
  bool open() const { return broken_micros_.has_value(); }
  // When the groups broke; nullopt: they are not broken.
  std::optional<int64_t> since_micros() const { return broken_micros_; }
  void Close() { broken_micros_.reset(); }

  // The groups are formed again once every member has sent a heartbeat at this
  // time or later. The back-off starts at one heartbeat and doubles, because
  // the cause may need time to disappear.
  int64_t RetryMicros(int64_t heartbeat_micros) const {
    const int64_t pause =
        count_ <= 1 ? 0
                    : std::min(kLongestPauseMicros,
                               int64_t{100'000} << std::min(count_ - 2, 10));
    return *broken_micros_ + std::max(pause, heartbeat_micros);
  }

  // Why the job fails after Add has returned false; the caller appends the
  // cause.
  std::string TooMany(int64_t now_micros) const {
    return absl::StrFormat(
        "the ranks' groups broke %d times in %.1f s, and no rank finished a "
        "step in between; the last time ",
        count_, static_cast<double>(now_micros - since_micros_) / 1e6);
  }
  std::string WaitsFor(int64_t now_micros) const {
    return absl::StrFormat(
        "waiting until everybody is heard, to form the ranks' groups anew: "
        "they broke %.1f s ago",
        static_cast<double>(now_micros - *broken_micros_) / 1e6);
  }

 private:
  const int64_t timeout_micros_;
  int count_ = 0;
  int64_t since_micros_ = 0;
  std::optional<int64_t> broken_micros_;
};

}  // namespace tributary
