// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/trace/trace_event.h"

namespace tributary {

// Keeps the events of the traced steps until they are taken. When there are too
// many, further events are dropped and counted. Thread-safe. A process without
// traced steps has no recorder, so an event costs it one branch.
class TraceRecorder {
 public:
  static constexpr size_t kMaxEventsAStep = 8192;
  static constexpr size_t kMaxWaiting = 65536;

  struct Options {
    int64_t first_step = 0;  // from 0
    int64_t last_step = 0;   // inclusive
    // Steps that a contribution to the servers covers (StepCount).
    int64_t steps_a_contribution = 1;
    size_t max_events_a_step = kMaxEventsAStep;
    size_t max_waiting = kMaxWaiting;
    const Clock* clock = &Clock::Real();
  };
  struct Counts {
    uint64_t recorded = 0;  // events kept so far, taken or not
    uint64_t dropped = 0;
  };

  explicit TraceRecorder(const Options& options);

  bool Covers(int64_t step) const {
    return step >= options_.first_step && step <= options_.last_step;
  }
  // The last step that contribution number `contribution`, from 0, covers. -1
  // if that step is certainly not traced, so any number may be passed.
  int64_t StepOf(int64_t contribution) const {
    const int64_t covers = options_.steps_a_contribution;
    return contribution < 0 || contribution > options_.last_step / covers
               ? -1
               : (contribution + 1) * covers - 1;
  }
  int64_t NowMicros() const { return options_.clock->NowMicros(); }

  // Keeps the event, if its step is traced.
  void Add(const TraceEvent& event);

  // Takes the oldest events, at most `most`.
  std::vector<TraceEvent> Take(size_t most);
  size_t waiting() const;
  Counts counts() const;

 private:
  const Options options_;

  mutable absl::Mutex mu_;
  std::deque<TraceEvent> waiting_ ABSL_GUARDED_BY(mu_);
  std::vector<uint32_t> events_ ABSL_GUARDED_BY(mu_);  // kept, of each step
  Counts counts_ ABSL_GUARDED_BY(mu_);
};

// Records the time from its construction to the end of its scope. Without a
// recorder it does nothing.
class TraceScope {
 public:
  // Sets the event's times itself.
  TraceScope(TraceRecorder* recorder, const TraceEvent& event)
      : recorder_(recorder), event_(event) {
    if (recorder_ != nullptr) event_.begin_micros = recorder_->NowMicros();
  }
  ~TraceScope() {
    if (recorder_ == nullptr) return;
    event_.end_micros = recorder_->NowMicros();
    recorder_->Add(event_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceRecorder* const recorder_;
  TraceEvent event_;
};

}  // namespace tributary
