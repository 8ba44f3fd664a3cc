// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/host/runtime.h"
#include "tests/simulation/world/world.h"

namespace tributary::simulation {

// The threads of the simulated processes. All of them run on the thread of the
// world, one at a time and each with a stack of its own. A thread gives way
// only where product code waits: in AwaitFor. Then the world goes on with its
// events. So the same seed gives the same run.
class Fibers final : public Runtime {
 public:
  // From now on product code waits in this object. Only one may exist at a
  // time.
  explicit Fibers(World* world);
  ~Fibers() override;

  // Starts a thread of this process, which first runs in the next Settle.
  std::function<void()> Start(Process* process, std::function<void()> work);
  // Runs every thread whose condition holds, until none does. Call it after
  // each event.
  void Settle();
  // Ends the threads of a process where they wait, the youngest first: their
  // objects are destroyed, but they wait for nothing more.
  void Kill(const Process* process);
  // True in a killed thread, whose objects are being destroyed.
  bool killed() const;
  // Blocks the calling thread until this holds.
  void Await(const std::function<bool()>& condition);
  // Blocks the calling thread. Work counts as progress of the job.
  void Sleep(int64_t micros, World::Kind kind);

  absl::Duration Now() override;
  // Outside of these threads it never waits.
  bool AwaitFor(absl::Mutex* mu, const absl::Condition& condition,
                absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  std::function<void()> Start(std::function<void()> work) override;

 private:
  class Fiber;

  void Resume(Fiber* fiber);
  bool MayRun(const Fiber& fiber) const;
  // Returns true when it has run a thread.
  bool RunOne();
  // Ends a wait after this time, if it is still the same one.
  void WakeAfter(int64_t micros, World::Kind kind);

  World* const world_;
  std::vector<std::shared_ptr<Fiber>> fibers_;  // in the order of their start
  Fiber* running_ = nullptr;
  int64_t turns_ = 0;  // waits of the running thread that ended at once
};

}  // namespace tributary::simulation
