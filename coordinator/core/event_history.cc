// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/event_history.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

// Cuts a text, perhaps within a UTF-8 character, which JSON then replaces.
std::string Short(std::string text) {
  if (text.size() <= EventHistory::kMaxTextBytes) return text;
  text.resize(EventHistory::kMaxTextBytes - 3);
  return text + "...";
}

}  // namespace

int64_t WallMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void EventHistory::Continue(const std::vector<HistoryEvent>& earlier,
                            int64_t step) {
  for (const HistoryEvent& event : earlier) {
    Keep({event.micros, Short(event.text), event.checkpoint});
  }
  Add(absl::StrCat("another coordinator continues the job after step ", step));
}

void EventHistory::Add(std::string text, bool checkpoint) {
  HistoryEvent event{wall_micros_(), Short(std::move(text)), checkpoint};
  if (new_.size() < kMaxEvents) new_.push_back(event);
  Keep(std::move(event));
}

void EventHistory::AddCheckpoint(int64_t step) {
  if (step == checkpoint_step_) return;
  checkpoint_step_ = step;
  Add(absl::StrCat("the checkpoint of step ", step, " is complete"),
      /*checkpoint=*/true);
}

void EventHistory::Keep(HistoryEvent event) {
  const auto is_checkpoint = [](const HistoryEvent& e) { return e.checkpoint; };
  events_.push_back(std::move(event));
  if (std::count_if(events_.begin(), events_.end(), is_checkpoint) >
      static_cast<std::ptrdiff_t>(kMaxCheckpoints)) {
    events_.erase(std::find_if(events_.begin(), events_.end(), is_checkpoint));
  }
  if (events_.size() > kMaxEvents) events_.pop_front();
}

google::protobuf::RepeatedPtrField<v1::JobEvent> EventHistory::Messages()
    const {
  google::protobuf::RepeatedPtrField<v1::JobEvent> messages;
  for (const HistoryEvent& event : events_) {
    v1::JobEvent* message = messages.Add();
    message->set_micros(event.micros);
    message->set_text(event.text);
  }
  return messages;
}

}  // namespace tributary
