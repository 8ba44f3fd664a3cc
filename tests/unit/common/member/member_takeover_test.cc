// SPDX-License-Identifier: Apache-2.0
// The messages of a member to a coordinator that has taken over its job.
#include <gtest/gtest.h>

#include "tests/unit/common/member/member_state_fixture.h"

namespace tributary {
namespace {

v1::HeartbeatResponse OfTerm(uint64_t term, v1::HeartbeatResponse answer) {
  answer.set_term(term);
  return answer;
}

TEST(MemberStateTest, AnAnswerOfALowerTermCountsAsNone) {
  MemberState state = MakeWorker();
  state.OnAnswer(state.NextHeartbeat(),
                 OfTerm(3, Answer(v1::JOB_PHASE_RUNNING)), kSecond);
  EXPECT_EQ(state.NextHeartbeat().term(), 3u);
  state.OnAnswer(state.NextHeartbeat(), OfTerm(2, Answer(v1::JOB_PHASE_FAILED)),
                 2 * kSecond);
  EXPECT_TRUE(state.end().ok());
  EXPECT_EQ(state.phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_EQ(state.contact().silent_micros(2 * kSecond), kSecond);
}

// The coordinator took over, but its full disk lets it take no evaluations yet.
TEST(MemberStateTest, ACoordinatorWhoseAnswerDoesNotCountYetIsNotLost) {
  MemberState state = MakeWorker();
  state.OnAnswer(state.NextHeartbeat(),
                 OfTerm(3, Answer(v1::JOB_PHASE_RUNNING)), kSecond);
  for (int64_t second = 2; second < 100; ++second) {
    state.OnContact(second * kSecond);
    state.OnError(absl::UnavailableError("busy"), second * kSecond);
    EXPECT_TRUE(state.end().ok());
  }
  EXPECT_EQ(state.contact().term(), 3u);
  state.OnError(absl::UnavailableError("gone"), 200 * kSecond);
  EXPECT_FALSE(state.end().ok());
}

TEST(MemberStateTest, ALaterCoordinatorIsToldWhatTheOneBeforeHadTaken) {
  MemberState state = MakeWorker();
  for (int64_t step = 1; step <= 5; ++step) state.ReportStep(Report(step));
  state.Finish();
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING, {}, 3),
                 1);
  ASSERT_EQ(state.NextHeartbeat().steps_size(), 2);
  // A coordinator takes nothing of a request to another one.
  state.OnAnswer(state.NextHeartbeat(),
                 OfTerm(1, Answer(v1::JOB_PHASE_RUNNING, {}, 2)), 2);
  EXPECT_FALSE(state.finish_acknowledged());
  const v1::HeartbeatRequest again = state.NextHeartbeat();
  ASSERT_EQ(again.steps_size(), 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(again.steps(i).step(), i + 1);
  EXPECT_TRUE(again.finished());
  state.OnAnswer(again, OfTerm(1, Answer(v1::JOB_PHASE_RUNNING, {}, 5)), 3);
  EXPECT_TRUE(state.finish_acknowledged());
  EXPECT_EQ(state.NextHeartbeat().steps_size(), 0);
}

TEST(MemberStateTest, StepsThatWereTakenAreKeptUpToABoundAndForOnePlan) {
  MemberState state = MakeWorker();
  constexpr auto kKept = static_cast<int64_t>(StepReports::kMaxKept);
  for (int64_t step = 1; step <= kKept + 10; ++step) {
    state.ReportStep(Report(step));
    state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING, {}, 1),
                   1);
  }
  MemberState other = state;
  state.OnAnswer(state.NextHeartbeat(),
                 OfTerm(1, Answer(v1::JOB_PHASE_RUNNING)), 2);
  ASSERT_EQ(state.NextHeartbeat().steps_size(), kKept);
  EXPECT_EQ(state.NextHeartbeat().steps(0).step(), 11);
  other.OnPlan(2, 0);
  other.OnAnswer(other.NextHeartbeat(),
                 OfTerm(1, Answer(v1::JOB_PHASE_RUNNING)), 2);
  EXPECT_EQ(other.NextHeartbeat().steps_size(), 0);
}

}  // namespace
}  // namespace tributary
