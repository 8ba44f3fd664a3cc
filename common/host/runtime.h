// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tributary {

// The clock, the waits and the threads of a process. A program uses those of
// the operating system. The simulator replaces them by its own, and so runs the
// same code in simulated time (tests/simulation/world/fibers.h).
class Runtime {
 public:
  virtual ~Runtime() = default;
  // As SteadyNow and AwaitFor (common/host/steady_waits.h).
  virtual absl::Duration Now() = 0;
  virtual bool AwaitFor(absl::Mutex* mu, const absl::Condition& condition,
                        absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;
  // Starts a thread. Returns a function that waits for its end.
  virtual std::function<void()> Start(std::function<void()> work) = 0;
};

// Set by the simulator before its first job; null in every program.
inline constinit Runtime* simulated_runtime = nullptr;

// A thread that the simulator can replace. Join or detach it before it is
// destroyed.
class Thread {
 public:
  explicit Thread(std::function<void()> work) {
    if (simulated_runtime != nullptr) {
      join_ = simulated_runtime->Start(std::move(work));
    } else {
      thread_ = std::thread(std::move(work));
    }
  }
  void join() { join_ ? join_() : thread_.join(); }
  // Call this instead of join when nobody waits for the thread's end.
  void detach() {
    if (!join_) thread_.detach();
  }

 private:
  std::thread thread_;
  std::function<void()> join_;
};

}  // namespace tributary
