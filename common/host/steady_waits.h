// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/host/runtime.h"

namespace tributary {

// The time of the steady clock since an arbitrary moment, for computing
// deadlines. absl::Now() is the wall clock, which may step.
inline absl::Duration SteadyNow() {
  if (simulated_runtime != nullptr) [[unlikely]] {
    return simulated_runtime->Now();
  }
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// mu->AwaitWithTimeout(condition, timeout) by the steady clock, so that steps
// of the wall clock do not change the timeout.
bool AwaitFor(absl::Mutex* mu, const absl::Condition& condition,
              absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

// Blocks this thread for a while by the steady clock.
void SleepSteadily(absl::Duration pause);

// Makes all timed waits of Abseil use the steady clock, including those of
// gRPC, whose timers wait through Abseil. A program gets this by calling
// UseSteadyWaits or AwaitFor anywhere, since both link the hook in
// steady_waits.cc.
void UseSteadyWaits();

}  // namespace tributary
