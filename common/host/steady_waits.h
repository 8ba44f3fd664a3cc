#pragma once

#include <chrono>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tributary {

// The time of the steady clock, from some moment on: deadlines are sums and
// differences of it. absl::Now() is the wall clock's, which may step.
inline absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// mu->AwaitWithTimeout(condition, timeout), by the steady clock: no step of the
// wall clock lengthens or shortens it.
bool AwaitFor(absl::Mutex* mu, const absl::Condition& condition,
              absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

// A program that calls this or AwaitFor anywhere has timed waits of Abseil that
// go by the steady clock, those of its libraries included: gRPC's timers wait
// through Abseil. steady_waits.cc says how.
void UseSteadyWaits();

}  // namespace tributary
