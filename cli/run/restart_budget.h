#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tributary {

// How often, and after which pause, a process of a run is started again. State
// in, answer out, time passed in.
//
// A process may be replaced `max_restarts` times in a row. One that has lived
// for kForgivenMicros begins its count anew: a run of weeks survives many
// losses, a process that ends again and again does not.
class RestartBudget {
 public:
  static constexpr int64_t kForgivenMicros = 600'000'000;
  static constexpr int64_t kFirstPauseMicros = 1'000'000;
  static constexpr int64_t kLongestPauseMicros = 10'000'000;

  explicit RestartBudget(int max_restarts) : max_restarts_(max_restarts) {}

  // `name` has ended after so long. How many microseconds to wait before it is
  // started again: none the first time in a row, then twice as long each time.
  // None: it has been replaced often enough.
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
  const int max_restarts_;
  std::map<std::string, int> in_a_row_;  // restarts, by name
};

}  // namespace tributary
