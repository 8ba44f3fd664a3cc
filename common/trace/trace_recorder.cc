// SPDX-License-Identifier: Apache-2.0
#include "common/trace/trace_recorder.h"

#include <algorithm>

#include "common/base/check.h"

namespace tributary {

TraceRecorder::TraceRecorder(const Options& options) : options_(options) {
  const int64_t steps = options_.last_step - options_.first_step + 1;
  TRIBUTARY_CHECK(steps >= 1 && steps <= kMaxTracedSteps);
  events_.resize(static_cast<size_t>(steps));
}

void TraceRecorder::Add(const TraceEvent& event) {
  if (!Covers(event.step)) return;
  absl::MutexLock lock(&mu_);
  uint32_t& events =
      events_[static_cast<size_t>(event.step - options_.first_step)];
  if (events >= options_.max_events_a_step ||
      waiting_.size() >= options_.max_waiting) {
    ++counts_.dropped;
    return;
  }
  ++events;
  ++counts_.recorded;
  waiting_.push_back(event);
}

std::vector<TraceEvent> TraceRecorder::Take(size_t most) {
  absl::MutexLock lock(&mu_);
  const auto end =
      waiting_.begin() + static_cast<int64_t>(std::min(most, waiting_.size()));
  std::vector<TraceEvent> taken(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

size_t TraceRecorder::waiting() const {
  absl::MutexLock lock(&mu_);
  return waiting_.size();
}

TraceRecorder::Counts TraceRecorder::counts() const {
  absl::MutexLock lock(&mu_);
  return counts_;
}

}  // namespace tributary
