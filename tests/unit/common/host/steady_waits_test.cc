#include "common/host/steady_waits.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/wire/deadline.h"
#include "tests/testing/faults/clock_step.h"

namespace tributary {
namespace {

using testing::TributaryClockStep;

// Far beyond every timeout here, not so long that a failure takes forever.
constexpr absl::Duration kStep = absl::Seconds(20);
constexpr absl::Duration kTimeout = absl::Milliseconds(300);

// Whether a thread of this process waits as Abseil and gRPC do: on a futex
// until a moment, or for events. It may sleep before that, such as for a lock
// of the loader, and the clock must not step there. proc(5) describes the file.
bool Waits(pid_t thread_id) {
  std::ifstream file(absl::StrCat("/proc/self/task/", thread_id, "/syscall"));
  long number = -1;
  uint64_t argument[4] = {};
  file >> number >> std::hex;
  for (uint64_t& each : argument) file >> each;
  if (!file) return false;  // "running"
#ifdef SYS_epoll_wait       // on older processors only
  if (number == SYS_epoll_wait) return true;
#endif
  return number == SYS_futex ? argument[3] != 0 : number == SYS_epoll_pwait;
}

// Runs `wait` on a thread, steps the wall clock once the thread is in it, then
// calls `after_step`. Returns how long the wait took. A wait that was over
// before this thread saw it is run again.
absl::Duration TimeWithStep(
    absl::Duration step, std::function<void()> wait,
    std::function<void()> after_step = [] {}) {
  UseSteadyWaits();
  while (true) {
    std::atomic<pid_t> thread_id{0};
    std::atomic<bool> over{false};
    absl::Duration took;
    std::thread waiter([&] {
      const absl::Duration begin = SteadyNow();
      thread_id = static_cast<pid_t>(syscall(SYS_gettid));
      wait();
      took = SteadyNow() - begin;
      over = true;
    });
    while (!over && (thread_id == 0 || !Waits(thread_id))) {
      std::this_thread::yield();
    }
    const bool in_time = !over;
    TributaryClockStep()->offset_nanos = absl::ToInt64Nanoseconds(step);
    after_step();
    waiter.join();
    TributaryClockStep()->offset_nanos = 0;
    if (in_time) return took;
  }
}

class SteadyWaitsTest : public ::testing::TestWithParam<int> {
 protected:
  void ExpectTheTimeout(absl::Duration took) {
    EXPECT_GE(took, kTimeout - absl::Milliseconds(1));
    EXPECT_LT(took, kStep / 2);
  }
  absl::Duration step() const { return GetParam() * kStep; }
};

TEST_P(SteadyWaitsTest, AMutexWaitsAsLongAsItWasTold) {
  absl::Mutex mu;
  bool never = false;
  ExpectTheTimeout(TimeWithStep(step(), [&] {
    absl::MutexLock lock(&mu);
    EXPECT_FALSE(AwaitFor(&mu, absl::Condition(&never), kTimeout));
  }));
}

TEST_P(SteadyWaitsTest, ANotificationAndAConditionVariableToo) {
  absl::Notification never;
  ExpectTheTimeout(TimeWithStep(step(), [&] {
    EXPECT_FALSE(never.WaitForNotificationWithTimeout(kTimeout));
  }));
  absl::Mutex mu;
  absl::CondVar nobody_signals;
  ExpectTheTimeout(TimeWithStep(step(), [&] {
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(nobody_signals.WaitWithTimeout(&mu, kTimeout));
  }));
}

TEST_P(SteadyWaitsTest, AConditionStillWakesAtOnce) {
  absl::Mutex mu;
  bool holds = false;
  const absl::Duration took = TimeWithStep(
      step(),
      [&] {
        absl::MutexLock lock(&mu);
        EXPECT_TRUE(AwaitFor(&mu, absl::Condition(&holds), 1000 * kStep));
      },
      [&] {
        absl::MutexLock lock(&mu);
        holds = true;
      });
  EXPECT_LT(took, kStep / 2);
}

TEST_P(SteadyWaitsTest, AnAlarmOfGrpcComesInTime) {
  grpc::CompletionQueue queue;
  grpc::Alarm alarm;
  ExpectTheTimeout(TimeWithStep(step(), [&] {
    alarm.Set(&queue, DeadlineAfter(kTimeout), nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(ok);
  }));
  queue.Shutdown();
}

TEST_P(SteadyWaitsTest, TheLibrarySteppedTheClock) {
  const auto before = std::chrono::system_clock::now();
  const int64_t reads = TributaryClockStep()->stepped_reads;
  TributaryClockStep()->offset_nanos = absl::ToInt64Nanoseconds(step());
  const absl::Duration by =
      absl::FromChrono(std::chrono::system_clock::now() - before);
  TributaryClockStep()->offset_nanos = 0;
  EXPECT_LT(absl::AbsDuration(by - step()), kStep / 2);
  EXPECT_GT(TributaryClockStep()->stepped_reads, reads);
}

INSTANTIATE_TEST_SUITE_P(ForwardAndBack, SteadyWaitsTest,
                         ::testing::Values(1, -1),
                         [](const ::testing::TestParamInfo<int>& info) {
                           return info.param > 0 ? "Forward" : "Back";
                         });

}  // namespace
}  // namespace tributary
