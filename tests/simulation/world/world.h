// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "tests/simulation/world/random.h"

// Adds a line to the trace; its parts are only computed when there is a trace.
#define TRIBUTARY_TRACE(world, ...)                                  \
  do {                                                               \
    if ((world).tracing()) (world).Trace(absl::StrCat(__VA_ARGS__)); \
  } while (false)

namespace tributary::simulation {

// A process of the simulated cluster. It lives until it crashes or ends; while
// it is paused (SIGSTOP) none of its events happen.
class Process {
 public:
  Process(int64_t pid, std::string name) : pid_(pid), name_(std::move(name)) {}
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int64_t pid() const { return pid_; }
  // "worker-1"; a process started in its place has the same name.
  const std::string& name() const { return name_; }
  bool alive() const { return alive_; }
  int64_t paused_until() const { return paused_until_; }

  void Pause(int64_t until_micros) { paused_until_ = until_micros; }
  // Drops the process's future events and releases what it holds.
  void Die() {
    alive_ = false;
    LetGo();
  }

 protected:
  virtual void LetGo() = 0;

 private:
  const int64_t pid_;
  const std::string name_;
  bool alive_ = true;
  int64_t paused_until_ = 0;
};

// Simulated time and all future events. Time advances from event to event;
// events at the same time happen in random order.
class World {
 public:
  // Work advances the job. Idle events recur by themselves (heartbeats,
  // deadlines): no process may depend on one of them to make progress.
  enum class Kind { kWork, kIdle };
  using Event = std::function<void()>;

  World(uint64_t seed, std::function<void(const std::string&)> trace)
      : random_(seed), trace_(std::move(trace)) {}

  int64_t now() const { return clock_.NowMicros(); }
  const Clock* clock() const { return &clock_; }
  Random& random() { return random_; }

  // Schedules `event` in `micros` microseconds. It is dropped when `owner` is
  // dead by then and delayed when `owner` is paused. Null: no owner.
  void After(int64_t micros, Process* owner, Kind kind, Event event);
  // Runs the next event; false when there is none.
  bool Step();

  int64_t events() const { return events_; }
  int64_t pending_work() const { return pending_work_; }
  // Hash of all events and their times: equal for equal runs.
  uint64_t digest() const { return digest_; }
  void Mix(uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001B3; }

  // Reports that an invariant does not hold. The first violation is kept and
  // ends the run.
  void Violate(const std::string& what);
  const std::string& violation() const { return violation_; }  // empty: none

  bool tracing() const { return trace_ != nullptr; }
  void Trace(const std::string& line);

 private:
  struct Scheduled {
    int64_t when;
    uint64_t order;  // random among events at the same time
    size_t slot;
    friend bool operator<(const Scheduled& a, const Scheduled& b) {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  struct Slot {
    Process* owner = nullptr;
    Kind kind = Kind::kWork;
    Event event;
  };

  void Schedule(int64_t when, size_t slot);

  Random random_;
  const std::function<void(const std::string&)> trace_;
  ManualClock clock_;
  std::priority_queue<Scheduled> queue_;
  std::vector<Slot> slots_;
  std::vector<size_t> free_slots_;
  int64_t pending_work_ = 0;
  int64_t events_ = 0;
  uint64_t digest_ = 0xCBF29CE484222325;
  std::string violation_;
};

}  // namespace tributary::simulation
