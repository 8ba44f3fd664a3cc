// SPDX-License-Identifier: Apache-2.0
// A preloaded library that steps the wall clock of one process, as an operator
// or a time server's first answer does. Unlike faketime it also affects waits
// that end at a wall-clock time, as the kernel would: it splits them into short
// waits on the steady clock and checks the wall clock in between.
#include "tests/testing/faults/clock_step.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

namespace tributary::testing {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kSlice = 5'000'000;

ClockStep own_step{};

ClockStep* Map() {
  const char* path = std::getenv(kClockStepFile);
  if (path == nullptr) return &own_step;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return &own_step;
  void* memory = mmap(nullptr, sizeof(ClockStep), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? &own_step : static_cast<ClockStep*>(memory);
}

template <typename Function>
Function* Next(Function* /*replaced*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int64_t Nanos(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}
timespec Timespec(int64_t nanos) { return {nanos / kSecond, nanos % kSecond}; }

int RealClock(clockid_t id, timespec* time) {
  static const auto real = Next(&clock_gettime, "clock_gettime");
  return real(id, time);
}

int64_t SteadyNanos() {
  timespec time{};
  RealClock(CLOCK_MONOTONIC, &time);
  return Nanos(time);
}

int64_t SteppedNanos() {
  ClockStep* step = TributaryClockStep();
  timespec time{};
  RealClock(CLOCK_REALTIME, &time);
  const int64_t offset = step->offset_nanos;
  if (offset != 0) ++step->stepped_reads;
  return Nanos(time) + offset;
}

// The steady-clock time until which a wait for a wall-clock time may sleep
// before it checks again; 0: the time has come.
int64_t NextLook(const timespec& moment) {
  const int64_t left = Nanos(moment) - SteppedNanos();
  if (TributaryClockStep()->offset_nanos != 0) {
    ++TributaryClockStep()->stepped_waits;
  }
  return left <= 0 ? 0 : SteadyNanos() + std::min(left, kSlice);
}

}  // namespace

extern "C" ClockStep* TributaryClockStep() {
  static ClockStep* const step = Map();
  return step;
}

extern "C" int clock_gettime(clockid_t id, timespec* time) noexcept {
  if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) {
    return RealClock(id, time);
  }
  *time = Timespec(SteppedNanos());
  return 0;
}

extern "C" int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  const int64_t now = SteppedNanos();
  *time = {now / kSecond, now % kSecond / 1000};
  return 0;
}

extern "C" time_t time(time_t* time) noexcept {
  const time_t now = SteppedNanos() / kSecond;
  if (time != nullptr) *time = now;
  return now;
}

extern "C" int pthread_cond_timedwait(pthread_cond_t* condition,
                                      pthread_mutex_t* mutex,
                                      const timespec* moment) {
  const int64_t look = NextLook(*moment);
  if (look == 0) return ETIMEDOUT;
  const timespec until = Timespec(look);
  const int result =
      pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &until);
  return result == ETIMEDOUT ? 0 : result;  // spurious wakeups are allowed
}

// Always reads six arguments, because the number of a call's arguments is
// unknown here. Surplus ones are read from the caller's frame, which the
// address sanitizer would report.
extern "C" __attribute__((no_sanitize("address"))) long syscall(long number,
                                                                ...) noexcept {
  static const auto real = Next(&::syscall, "syscall");
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  const bool stepped =
      number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0 && a[3] != 0;
  if (!stepped) return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const auto& moment = *reinterpret_cast<const timespec*>(a[3]);
  while (const int64_t look = NextLook(moment)) {
    const timespec until = Timespec(look);
    const long result = real(number, a[0], a[1] & ~FUTEX_CLOCK_REALTIME, a[2],
                             &until, a[4], a[5]);
    if (result == 0 || errno != ETIMEDOUT) return result;
  }
  errno = ETIMEDOUT;
  return -1;
}

}  // namespace tributary::testing
