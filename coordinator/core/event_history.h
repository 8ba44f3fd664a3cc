// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Something that a reader of the job's history wants to know.
struct HistoryEvent {
  int64_t micros = 0;       // since 1970, UTC
  std::string text;         // a sentence
  bool checkpoint = false;  // a checkpoint was completed
};

// Microseconds since 1970, UTC, by the system's clock.
int64_t WallMicros();

// The newest events of a job: losses, replacements, rollbacks, checkpoints and
// phases. Bounded: the oldest event is dropped first, but checkpoints, of which
// a job has many, take at most kMaxCheckpoints of the places. A plain object:
// its owner locks.
class EventHistory {
 public:
  static constexpr size_t kMaxEvents = 64;
  static constexpr size_t kMaxCheckpoints = 8;
  static constexpr size_t kMaxTextBytes = 400;  // of one event

  explicit EventHistory(std::function<int64_t()> wall_micros = WallMicros)
      : wall_micros_(std::move(wall_micros)) {}

  // Begins with the events of an earlier coordinator of the job, which recorded
  // steps up to `step`, and adds an event: "another coordinator continues".
  void Continue(const std::vector<HistoryEvent>& earlier, int64_t step);
  // Adds an event with the current time. A text longer than kMaxTextBytes is
  // cut.
  void Add(std::string text) { Add(std::move(text), /*checkpoint=*/false); }
  // Adds the completion of this checkpoint, unless it was the last one that was
  // added or `step` is 0.
  void AddCheckpoint(int64_t step);

  // Oldest first.
  const std::deque<HistoryEvent>& all() const { return events_; }
  google::protobuf::RepeatedPtrField<v1::JobEvent> Messages() const;
  // Takes the events added since the last call, at most kMaxEvents, without
  // those of an earlier coordinator.
  std::vector<HistoryEvent> TakeNew() { return std::exchange(new_, {}); }

 private:
  void Add(std::string text, bool checkpoint);
  void Keep(HistoryEvent event);

  const std::function<int64_t()> wall_micros_;
  std::deque<HistoryEvent> events_;
  std::vector<HistoryEvent> new_;
  int64_t checkpoint_step_ = 0;  // of the last one added; 0: none
};

}  // namespace tributary
