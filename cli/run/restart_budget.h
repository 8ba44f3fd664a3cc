// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tributary {

// Decides how often, and after which pause, a process of a run is started
// again. A plain object: time is passed in.
//
// A process may be replaced `max_restarts` times in a row. A process that has
// lived for kForgivenMicros resets its count. So a run of weeks survives many
// losses, but gives up a process that keeps failing.
class RestartBudget {
 public:
  static constexpr int64_t kForgivenMicros = 600'000'000;
  static constexpr int64_t kFirstPauseMicros = 1'000'000;
  static constexpr int64_t kLongestPauseMicros = 10'000'000;

  explicit RestartBudget(int max_restarts) : max_restarts_(max_restarts) {}
  void set_max_restarts(int max_restarts) { max_restarts_ = max_restarts; }

  // Call it when process `name` has ended after `lived_micros`. Returns the
  // pause in microseconds before it is started again: zero the first time in a
  // row, then doubling. nullopt: it has been replaced too often.
  std::optional<int64_t> Ended(const std::string& name, int64_t lived_micros) {
    int& in_a_row = in_a_row_[name];
    if (lived_micros >= kForgivenMicros) in_a_row = 0;
    if (in_a_row >= max_restarts_) return std::nullopt;
    const int64_t pause =
        in_a_row == 0
            ? 0
            : std::min(kLongestPauseMicros,
                       kFirstPauseMicros << std::min(in_a_row - 1, 10));
    ++in_a_row;
    return pause;
  }

 private:
  int max_restarts_;
  std::map<std::string, int> in_a_row_;  // restarts, by name
};

}  // namespace tributary
