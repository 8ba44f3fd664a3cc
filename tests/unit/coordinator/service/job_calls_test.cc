// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_calls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/unit/coordinator/service/job_control_fixture.h"

namespace tributary {
namespace {

TEST(JobCallsTest, WhoComesForAPlanWhenTheJobIsDoneGoesHome) {
  ManualClock clock;
  JobControl control({.state = Options(), .clock = &clock});
  Join(control, v1::ROLE_SERVER, "server");
  std::vector<v1::RegisterResponse> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(
        Join(control, v1::ROLE_WORKER, absl::StrCat("worker-", i)));
  }
  Declare(control, workers[0]);
  ASSERT_TRUE(control.calls().GetPlan({}).ok());
  control.output().Saved(1, absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(control.calls().GetPlan({}).status()));
}

TEST(JobCallsTest, APlanIsForThoseWhoHoldAPlace) {
  ManualClock clock;
  JobControl control({.state = Options(), .clock = &clock});
  const auto server = Join(control, v1::ROLE_SERVER, "server");
  std::vector<v1::RegisterResponse> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(
        Join(control, v1::ROLE_WORKER, absl::StrCat("worker-", i)));
  }
  Declare(control, workers[0]);
  const auto ask = [&](v1::Role role, const v1::RegisterResponse& place) {
    return control.calls()
        .GetPlan({}, MemberPlace{.role = role,
                                 .index = place.index(),
                                 .incarnation = place.incarnation()})
        .status();
  };
  EXPECT_TRUE(ask(v1::ROLE_SERVER, server).ok());
  EXPECT_TRUE(ask(v1::ROLE_WORKER, workers[0]).ok());
  EXPECT_TRUE(ask(v1::ROLE_OBSERVER, {}).ok());
  control.MemberLost(v1::ROLE_WORKER, 0, 0, "killed");
  EXPECT_TRUE(absl::IsFailedPrecondition(ask(v1::ROLE_WORKER, workers[0])));
  const auto next = Join(control, v1::ROLE_WORKER, "another");
  ASSERT_EQ(next.index(), workers[0].index());
  EXPECT_TRUE(ask(v1::ROLE_WORKER, next).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ask(v1::ROLE_WORKER, workers[0])));
  control.MemberLost(v1::ROLE_SERVER, 0, 0, "killed");
  Join(control, v1::ROLE_SERVER, "another server");
  EXPECT_TRUE(absl::IsFailedPrecondition(ask(v1::ROLE_SERVER, server)));
}

// A process that has outlived its job and its coordinator.
TEST(JobCallsTest, AHeartbeatOfAnotherJobRenewsNoLease) {
  ManualClock clock;
  JobControl::Options options;
  options.state = Options();
  options.state.job_id = 42;
  options.clock = &clock;
  JobControl control(std::move(options));
  const auto server = Join(control, v1::ROLE_SERVER, "server");
  v1::HeartbeatRequest request = Beat(v1::ROLE_SERVER, server);
  request.set_job_id(41);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(control.calls().Heartbeat(request).status()));
  request.set_job_id(42);
  EXPECT_TRUE(control.calls().Heartbeat(request).ok());
}

// Anybody may call: as many calls are held as the job has members, so that
// threads are left for heartbeats.
TEST(JobCallsTest, CallsThatWaitAreBounded) {
  JobControl control({.state = Options(), .clock = &Clock::Real()});
  const int members = Options().job.cluster().servers() + kWorkers;
  std::vector<std::thread> waiting;
  std::atomic<int> refused = 0;
  std::atomic<int> ended = 0;
  for (int i = 0; i < members + 5; ++i) {
    waiting.emplace_back([&] {
      v1::GetPlanRequest request;
      request.set_wait_ms(10'000);
      const absl::Status status = control.calls().GetPlan(request).status();
      refused += absl::IsResourceExhausted(status) ? 1 : 0;
      ended += absl::IsUnavailable(status) ? 1 : 0;
    });
  }
  const absl::Time deadline = absl::Now() + kSoon;
  while (refused < 5 && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(refused, 5);
  control.Close();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(refused, 5);
  EXPECT_EQ(ended, members);
}

TEST(JobCallsTest, ACallWaitsForTenSecondsAtMost) {
  EXPECT_EQ(JobCalls::WaitOf(0), absl::ZeroDuration());
  EXPECT_EQ(JobCalls::WaitOf(2'500), absl::Milliseconds(2'500));
  EXPECT_EQ(JobCalls::WaitOf(10'000), absl::Seconds(10));
  EXPECT_EQ(JobCalls::WaitOf(10'001), absl::Seconds(10));
  EXPECT_EQ(JobCalls::WaitOf(UINT32_MAX), absl::Seconds(10));
}

TEST(JobCallsTest, ObserversThatWaitLeaveTheMembersTheirShare) {
  JobControl control({.state = Options(), .clock = &Clock::Real()});
  const int members = Options().job.cluster().servers() + kWorkers;
  std::vector<std::thread> waiting;
  std::atomic<int> refused = 0;
  std::atomic<int> ended = 0;
  const auto wait = [&](const std::optional<MemberPlace>& caller) {
    v1::GetPlanRequest request;
    request.set_wait_ms(10'000);
    const absl::Status status =
        control.calls().GetPlan(request, caller).status();
    refused += absl::IsResourceExhausted(status) ? 1 : 0;
    ended += absl::IsUnavailable(status) ? 1 : 0;
  };
  for (int i = 0; i < JobCalls::kMostObservers + 3; ++i) {
    waiting.emplace_back([&] { wait(MemberPlace{.role = v1::ROLE_OBSERVER}); });
  }
  const absl::Time deadline = absl::Now() + kSoon;
  while (refused < 3 && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(refused, 3);
  for (int i = 0; i < members + 1; ++i) {
    waiting.emplace_back([&] { wait(std::nullopt); });
  }
  while (refused < 4 && absl::Now() < deadline) std::this_thread::yield();
  control.Close();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(refused, 4) << "one more than the job has members";
  EXPECT_EQ(ended, JobCalls::kMostObservers + members);
}

TEST(JobCallsTest, CloseEndsEveryWait) {
  JobControl control({.state = Options(), .clock = &Clock::Real()});
  std::vector<std::thread> waiting;
  waiting.emplace_back([&] {
    v1::GetPlanRequest request;
    request.set_wait_ms(10'000);
    EXPECT_TRUE(absl::IsUnavailable(control.calls().GetPlan(request).status()));
  });
  waiting.emplace_back([&] { control.Tick(kSoon); });
  waiting.emplace_back([&] { control.output().AwaitWork(kSoon); });
  waiting.emplace_back([&] { control.WaitUntilEveryoneKnowsEnd(kSoon); });
  control.Close();
  const absl::Time before = absl::Now();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_LT(absl::Now() - before, absl::Seconds(5));
  EXPECT_TRUE(control.closed());
}

v1::HeartbeatRequest WithTrace(v1::HeartbeatRequest beat, uint64_t first) {
  v1::TraceReport& report = *beat.mutable_trace();
  report.set_first(first);
  report.set_recorded(first + 1);
  v1::TraceEvent& event = *report.add_events();
  event.set_kind(v1::TRACE_EVENT_KIND_UPDATE);
  event.set_step(2);
  return beat;
}

TEST(JobCallsTest, AHeartbeatBringsATraceAndTheCoordinatorsTime) {
  ManualClock clock;
  clock.AdvanceMicros(700);
  JobState::Options options = Options();
  options.job.mutable_trace()->set_first_step(2);
  options.job.mutable_trace()->set_last_step(2);
  JobControl control({.state = options, .clock = &clock});
  const auto server = Join(control, v1::ROLE_SERVER, "server");
  const v1::HeartbeatRequest beat = Beat(v1::ROLE_SERVER, server);
  const auto answer = control.calls().Heartbeat(WithTrace(beat, 0)).value();
  EXPECT_TRUE(answer.trace_taken());
  EXPECT_EQ(answer.received_micros(), 700);
  EXPECT_EQ(answer.answered_micros(), 700);
  EXPECT_FALSE(control.calls().Heartbeat(beat).value().trace_taken());
  // Servers report their last step when the job is over.
  control.Fail("over");
  EXPECT_TRUE(
      control.calls().Heartbeat(WithTrace(beat, 1)).value().trace_taken());
  const JobUpdate update = control.WaitForUpdate(absl::ZeroDuration());
  ASSERT_EQ(update.trace.size(), 2u);
  EXPECT_EQ(update.trace[1].first, 1u);
  EXPECT_EQ(update.trace[1].events.size(), 1u);
}

}  // namespace
}  // namespace tributary
