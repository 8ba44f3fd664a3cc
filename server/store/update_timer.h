// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "server/store/shard_counters.h"

namespace tributary {

// Adds the time from its construction to the end of its scope to update_micros.
class UpdateTimer {
 public:
  UpdateTimer(const Clock* clock, ShardCounters* counters)
      : clock_(clock), counters_(counters), begin_(clock->NowMicros()) {}
  ~UpdateTimer() { counters_->update_micros += clock_->NowMicros() - begin_; }

 private:
  const Clock* const clock_;
  ShardCounters* const counters_;
  const int64_t begin_;
};

}  // namespace tributary
