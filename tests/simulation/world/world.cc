// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world/world.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace tributary::simulation {

void World::Schedule(int64_t when, size_t slot) {
  queue_.push({when, random_.Next(), slot});
}

void World::After(int64_t micros, Process* owner, Kind kind, Event event) {
  size_t slot = slots_.size();
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slots_[slot] = {owner, kind, std::move(event)};
  if (kind == Kind::kWork) ++pending_work_;
  Schedule(now() + std::max<int64_t>(micros, 0), slot);
}

bool World::Step() {
  if (queue_.empty()) return false;
  const Scheduled next = queue_.top();
  queue_.pop();
  clock_.AdvanceMicros(next.when - now());
  Slot& slot = slots_[next.slot];
  if (slot.owner != nullptr && slot.owner->alive() &&
      slot.owner->paused_until() > now()) {
    Schedule(slot.owner->paused_until(), next.slot);
    return true;
  }
  const Slot taken = std::exchange(slot, Slot());
  free_slots_.push_back(next.slot);
  if (taken.kind == Kind::kWork) --pending_work_;
  if (taken.owner != nullptr && !taken.owner->alive()) return true;
  ++events_;
  Mix(static_cast<uint64_t>(next.when));
  taken.event();
  return true;
}

void World::Violate(const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = what;
  if (tracing()) Trace(absl::StrCat("VIOLATION: ", what));
}

void World::Trace(const std::string& line) {
  trace_(
      absl::StrFormat("%10.6f  %s", static_cast<double>(now()) * 1e-6, line));
}

}  // namespace tributary::simulation
