// SPDX-License-Identifier: Apache-2.0
#include "common/host/steady_waits.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
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

// How often each other thread of this process has been taken off its processor;
// nullopt if one of them does not sleep. proc(5) describes the file.
std::optional<std::map<std::string, int64_t>> SwitchesOfSleepers() {
  std::map<std::string, int64_t> switches;
  const std::string self = absl::StrCat(syscall(SYS_gettid));
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == self) continue;
    std::ifstream status(task.path() / "status");
    int64_t& count = switches[task.path().filename()];
    bool sleeps = false;
    for (std::string word; status >> word;) {
      int64_t number = 0;
      if (word == "State:") sleeps = status >> word && word == "S";
      if (word.ends_with("_switches:") && status >> number) count += number;
    }
    if (!sleeps) return std::nullopt;
  }
  return switches;
}

// Whether all other threads slept at one moment, so that each is in its wait,
// also the thread of gRPC that ends alarms. A thread that ran between the two
// looks has been switched once more.
bool AllOthersWait() {
  const auto first = SwitchesOfSleepers();
  return first.has_value() && first == SwitchesOfSleepers();
}

// Runs `wait` on a thread, steps the wall clock once every thread waits, then
// calls `after_step`. Returns how long the wait took. A wait that was over
// before this thread saw it is run again.
absl::Duration TimeWithStep(
    absl::Duration step, std::function<void()> wait,
    std::function<void()> after_step = [] {}) {
  UseSteadyWaits();
  while (true) {
    std::atomic<bool> begun{false};
    std::atomic<bool> over{false};
    absl::Duration took;
    std::thread waiter([&] {
      const absl::Duration begin = SteadyNow();
      begun = true;
      wait();
      took = SteadyNow() - begin;
      over = true;
    });
    while (!over && (!begun || !AllOthersWait())) {
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
