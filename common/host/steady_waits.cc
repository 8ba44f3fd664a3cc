// SPDX-License-Identifier: Apache-2.0
#include "common/host/steady_waits.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "absl/base/config.h"
#include "absl/synchronization/internal/per_thread_sem.h"
#include "absl/synchronization/internal/waiter.h"
#include "absl/time/clock.h"

namespace tributary {
namespace {

constexpr absl::Duration kLongestWait = absl::Hours(24 * 365);

constexpr int64_t kNanosPerSecond = 1'000'000'000;

int64_t NanosOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

// The end of this thread's AwaitFor, in nanoseconds of the steady clock; 0 when
// the thread is not in AwaitFor.
thread_local int64_t awaited_until = 0;

}  // namespace

void UseSteadyWaits() {}

bool AwaitFor(absl::Mutex* mu, const absl::Condition& condition,
              absl::Duration timeout) {
  if (simulated_runtime != nullptr) [[unlikely]] {
    return simulated_runtime->AwaitFor(mu, condition, timeout);
  }
  awaited_until = NanosOf(CLOCK_MONOTONIC) +
                  absl::ToInt64Nanoseconds(std::min(timeout, kLongestWait));
  const bool holds = mu->AwaitWithTimeout(condition, timeout);
  awaited_until = 0;
  return holds;
}

void SleepSteadily(absl::Duration pause) {
  absl::Mutex mu;
  const absl::MutexLock lock(&mu);
  const bool never = false;
  AwaitFor(&mu, absl::Condition(&never), pause);
}

}  // namespace tributary

// Since release 20230802 Abseil measures timeouts with the steady clock.
#if defined(ABSL_LTS_RELEASE_VERSION) &&   \
    ABSL_LTS_RELEASE_VERSION < 20230802 && \
    ABSL_WAITER_MODE == ABSL_WAITER_MODE_FUTEX

namespace tributary {
namespace {

using absl::synchronization_internal::KernelTimeout;
using absl::synchronization_internal::Waiter;

// The time left until `wall`, a time of the wall clock. After the wall clock
// steps, Abseil and gRPC disagree for a while, because Abseil interpolates it
// between readings two seconds apart and gRPC reads it every time. `wall` may
// come from either, so this takes the shorter of the two differences that is
// not negative. If that is too short, gRPC checks its own clock and waits
// again.
int64_t NanosUntil(int64_t wall) {
  const int64_t by_reading = wall - NanosOf(CLOCK_REALTIME);
  const int64_t by_abseil = wall - absl::GetCurrentTimeNanos();
  const auto [shorter, longer] = std::minmax(by_reading, by_abseil);
  return std::max<int64_t>(shorter >= 0 ? shorter : longer, 0);
}

// Converts the wall-clock deadline of a wait to the steady clock. A wait that
// is interrupted and entered again passes the same deadline and gets the same
// result, even if the wall clock has stepped since.
int64_t SteadyDeadline(KernelTimeout timeout) {
  if (awaited_until != 0) return awaited_until;
  thread_local int64_t last_wall = 0;
  thread_local int64_t last_steady = 0;
  const timespec moment = timeout.MakeAbsTimespec();
  const int64_t wall = moment.tv_sec * kNanosPerSecond + moment.tv_nsec;
  if (wall != last_wall) {
    last_steady = NanosOf(CLOCK_MONOTONIC) + NanosUntil(wall);
    last_wall = wall;
  }
  return last_steady;
}

// A thread's semaphore is the futex that makes up its Waiter.
static_assert(sizeof(Waiter) == sizeof(std::atomic<int32_t>));

// Like Waiter::Wait, but without FUTEX_CLOCK_REALTIME, so by CLOCK_MONOTONIC.
bool WaitUntil(std::atomic<int32_t>* futex, int64_t deadline) {
  const timespec moment{deadline / kNanosPerSecond, deadline % kNanosPerSecond};
  while (true) {
    int32_t count = futex->load(std::memory_order_relaxed);
    while (count != 0) {
      if (futex->compare_exchange_weak(count, count - 1,
                                       std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return true;
      }
    }
    const int64_t result =
        syscall(SYS_futex, futex, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0,
                &moment, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (result != 0 && errno == ETIMEDOUT) return false;
  }
}

}  // namespace
}  // namespace tributary

// Abseil's hook for blocking threads (per_thread_sem.h). It is a weak symbol,
// so this definition replaces it for every library in the process.
extern "C" bool ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemWait)(
    absl::synchronization_internal::KernelTimeout timeout) {
  using absl::synchronization_internal::Waiter;
  Waiter* const waiter = Waiter::GetWaiter(
      absl::synchronization_internal::GetOrCreateCurrentThreadIdentity());
  if (!timeout.has_timeout()) return waiter->Wait(timeout);
  return tributary::WaitUntil(reinterpret_cast<std::atomic<int32_t>*>(waiter),
                              tributary::SteadyDeadline(timeout));
}

#endif
