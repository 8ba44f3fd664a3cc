// SPDX-License-Identifier: Apache-2.0
#include "server/service/calls/rank_waits.h"

#include <algorithm>

namespace tributary {

void RankWaits::Sample(int64_t now_micros, const std::vector<int>& missing) {
  const int64_t passed = last_micros_ < 0 ? 0 : now_micros - last_micros_;
  last_micros_ = now_micros;
  const double seconds =
      static_cast<double>(std::min(passed, kLongestPauseMicros)) * 1e-6;
  for (std::atomic<bool>& waiting : waiting_) waiting = false;
  if (missing.size() * 2 > seconds_.size()) return;
  for (int rank : missing) {
    waiting_[rank] = true;
    seconds_[rank] = seconds_[rank] + seconds;
  }
}

}  // namespace tributary
