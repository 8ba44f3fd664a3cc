// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/common/member/member_state_fixture.h"

#include "common/base/limits.h"

namespace tributary {
namespace {

TEST(MemberStateTest, HeartbeatCarriesPlaceAndUntakenStepsInOrder) {
  MemberState state = MakeWorker();
  state.Begin(1);
  state.ReportStep(Report(1));
  state.Begin(2);
  state.ReportStep(Report(2));
  const v1::HeartbeatRequest request = state.NextHeartbeat();
  EXPECT_EQ(request.role(), v1::ROLE_WORKER);
  EXPECT_EQ(request.index(), 1u);
  EXPECT_EQ(request.incarnation(), 7u);
  EXPECT_EQ(request.begun_step(), 2);
  ASSERT_EQ(request.steps_size(), 2);
  EXPECT_EQ(request.steps(0).step(), 1);
  EXPECT_EQ(request.steps(1).step(), 2);
}

TEST(MemberStateTest, AFinalHeartbeatCarriesTheStepsBeforeThem) {
  MemberState state = MakeWorker();
  state.Begin(1);
  state.ReportStep(Report(1));
  const v1::HeartbeatRequest words =
      FinalHeartbeat(state.NextHeartbeat(), absl::DataLossError("not finite"));
  EXPECT_EQ(words.error(), "not finite");
  ASSERT_EQ(words.steps_size(), 1);
  EXPECT_EQ(words.steps(0).step(), 1);
}

TEST(MemberStateTest, TheEndOfTheProgramWaitsForTheStopStep) {
  MemberState state = MakeWorker();
  state.OnPlan(0, 0);
  state.StartAt(0, 0);
  state.Begin(4);
  EXPECT_FALSE(state.TryToEnd().has_value());
  EXPECT_TRUE(state.Urgent());
  const v1::HeartbeatRequest request = state.NextHeartbeat();
  EXPECT_TRUE(request.program_ended());
  EXPECT_EQ(request.begun_step(), 4);
  state.OnAnswer(request, Answer(v1::JOB_PHASE_STOPPING), 1);
  EXPECT_FALSE(state.TryToEnd().has_value());
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_STOPPING), 2);
  EXPECT_FALSE(state.Urgent());  // it has told all that it knows
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_STOPPING, 4), 3);
  EXPECT_EQ(state.TryToEnd(), absl::OkStatus());
}

TEST(MemberStateTest, AProgramThatEndsBeforeTheOthersLearnsTheirStep) {
  MemberState state = MakeWorker();
  state.Begin(4);
  EXPECT_FALSE(state.TryToEnd().has_value());
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_STOPPING, 5), 1);
  EXPECT_EQ(state.TryToEnd(),
            absl::OutOfRangeError(
                "the program of worker 1 has ended after step 4, but the job "
                "goes on to step 5: every rank must take the same number of "
                "steps"));
}

TEST(MemberStateTest, ANewPlanTakesTheEndOfTheProgramBack) {
  MemberState state = MakeWorker();
  state.OnPlan(1, 0);
  state.Begin(4);
  EXPECT_FALSE(state.TryToEnd().has_value());
  v1::HeartbeatResponse answer = Answer(v1::JOB_PHASE_STOPPING);
  answer.set_plan_epoch(2);
  state.OnAnswer(state.NextHeartbeat(), answer, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(*state.TryToEnd()));
  state.StartAt(2, 2);
  EXPECT_FALSE(state.NextHeartbeat().program_ended());
}

TEST(MemberStateTest, OnlyTakenStepsAreForgotten) {
  MemberState state = MakeWorker();
  for (int64_t step = 1; step <= 3; ++step) state.ReportStep(Report(step));
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING, {}, 2),
                 1);
  const v1::HeartbeatRequest next = state.NextHeartbeat();
  ASSERT_EQ(next.steps_size(), 1);
  EXPECT_EQ(next.steps(0).step(), 3);
}

TEST(MemberStateTest, LostAnswerSendsTheSameStepsAgain) {
  MemberState state = MakeWorker();
  state.ReportStep(Report(1));
  state.NextHeartbeat();
  state.OnError(absl::UnavailableError("refused"), kSecond);
  EXPECT_TRUE(state.end().ok());
  EXPECT_EQ(state.NextHeartbeat().steps_size(), 1);
}

TEST(MemberStateTest, StepsReportedWhileAHeartbeatIsUnderWayAreKept) {
  MemberState state = MakeWorker();
  state.ReportStep(Report(1));
  const v1::HeartbeatRequest request = state.NextHeartbeat();
  state.ReportStep(Report(2));
  state.OnAnswer(request, Answer(v1::JOB_PHASE_RUNNING, {}, 1), 1);
  ASSERT_EQ(state.NextHeartbeat().steps_size(), 1);
  EXPECT_EQ(state.NextHeartbeat().steps(0).step(), 2);
}

TEST(MemberStateTest, AnswerThatTakesMoreThanWasSentForgetsNoMore) {
  MemberState state = MakeWorker();
  state.ReportStep(Report(1));
  const v1::HeartbeatRequest request = state.NextHeartbeat();
  state.ReportStep(Report(2));
  state.OnAnswer(request, Answer(v1::JOB_PHASE_RUNNING, {}, 99), 1);
  EXPECT_EQ(state.NextHeartbeat().steps_size(), 1);
}

TEST(MemberStateTest, AGateThatOpensBeginsTheStepAndAClosedOneSaysWhy) {
  MemberState state = MakeWorker();
  state.StartAt(/*plan_epoch=*/1, 5);
  EXPECT_FALSE(state.TryToBegin(6).has_value());  // no answer yet
  v1::HeartbeatResponse running = Answer(v1::JOB_PHASE_RUNNING);
  running.set_plan_epoch(1);
  state.OnAnswer(state.NextHeartbeat(), running, 1);
  EXPECT_EQ(state.TryToBegin(6), absl::OkStatus());
  EXPECT_EQ(state.begun_step(), 6);
  running.set_plan_epoch(2);
  state.OnAnswer(state.NextHeartbeat(), running, 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(*state.TryToBegin(7)));
  state.StartAt(2, 6);
  running.set_stop_step(6);
  state.OnAnswer(state.NextHeartbeat(), running, 3);
  EXPECT_TRUE(absl::IsCancelled(*state.TryToBegin(7)));
  EXPECT_EQ(state.begun_step(), 6);
}

// No stop is settled for the steps of a plan that is over.
TEST(MemberStateTest, AStepThatIsHeldBackGoesOnWithANewPlan) {
  MemberState state = MakeWorker();
  state.StartAt(/*plan_epoch=*/1, 5);
  v1::HeartbeatResponse stopping = Answer(v1::JOB_PHASE_STOPPING);
  stopping.set_plan_epoch(1);
  state.OnAnswer(state.NextHeartbeat(), stopping, 1);
  EXPECT_EQ(state.Check(6), MemberState::Gate::kWait);
  stopping.set_plan_epoch(2);
  state.OnAnswer(state.NextHeartbeat(), stopping, 2);
  EXPECT_EQ(state.Check(6), MemberState::Gate::kNewPlan);
  state.StartAt(2, 3);
  EXPECT_EQ(state.Check(4), MemberState::Gate::kWait);
}

TEST(MemberStateTest, FailedJobEndsEverything) {
  MemberState state = MakeWorker();
  v1::HeartbeatResponse failed = Answer(v1::JOB_PHASE_FAILED);
  failed.set_message("server 0 was lost");
  state.OnAnswer(state.NextHeartbeat(), failed, 1);
  EXPECT_EQ(state.Check(1), MemberState::Gate::kEnded);
  EXPECT_EQ(state.end(), absl::AbortedError("server 0 was lost"));
}

TEST(MemberStateTest, SilentCoordinatorIsLostOnlyAfterTheTimeout) {
  MemberState state = MakeWorker();
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING),
                 10 * kSecond);
  state.OnError(absl::UnavailableError("refused"), 39 * kSecond);
  EXPECT_TRUE(state.end().ok());
  state.OnError(absl::UnavailableError("refused"), 40 * kSecond);
  EXPECT_EQ(state.end(),
            absl::UnavailableError(
                "coordinator 10.0.0.1:7000 has not answered for 30.0 s"));
}

TEST(MemberStateTest, ACoordinatorShortOfThreadsIsBorneAsLong) {
  MemberState state = MakeWorker();
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING),
                 10 * kSecond);
  state.OnError(absl::ResourceExhaustedError(""), 39 * kSecond);
  EXPECT_TRUE(state.end().ok());
  state.OnError(absl::ResourceExhaustedError(""), 40 * kSecond);
  EXPECT_TRUE(absl::IsUnavailable(state.end())) << state.end();
}

TEST(MemberStateTest, ABrokenGroupIsToldUntilThereIsAnotherPlan) {
  MemberState state = MakeWorker();
  state.OnPlan(/*plan_epoch=*/3, /*start_step=*/0);
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING), 1);
  EXPECT_EQ(state.NextHeartbeat().broken_group_epoch(), 0u);
  state.BreakGroup(3, "rank 1 is gone");
  EXPECT_TRUE(state.Urgent());
  for (int heartbeat = 0; heartbeat < 2; ++heartbeat) {
    const v1::HeartbeatRequest request = state.NextHeartbeat();
    EXPECT_EQ(request.broken_group_epoch(), 3u);
    EXPECT_EQ(request.broken_group(), "rank 1 is gone");
    EXPECT_FALSE(state.Urgent());
  }
  state.OnPlan(/*plan_epoch=*/4, /*start_step=*/0);
  EXPECT_EQ(state.NextHeartbeat().broken_group_epoch(), 0u);
}

TEST(MemberStateTest, WhatTheCoordinatorWaitsForIsKnownUntilItsNextAnswer) {
  MemberState state = MakeWorker();
  v1::HeartbeatResponse waits = Answer(v1::JOB_PHASE_RUNNING);
  waits.set_waits_for("waiting for worker 2");
  state.OnAnswer(state.NextHeartbeat(), waits, 1);
  EXPECT_EQ(state.waits_for(), "waiting for worker 2");
  EXPECT_EQ(state.contact().answers(), 1);
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING), 2);
  EXPECT_EQ(state.waits_for(), "");
  EXPECT_EQ(state.contact().answers(), 2);
}

TEST(MemberStateTest, LostLeaseEndsTheMembershipAtOnce) {
  MemberState state = MakeWorker();
  state.OnError(absl::FailedPreconditionError("lease lost"), 1);
  EXPECT_EQ(state.end(), absl::FailedPreconditionError("lease lost"));
}

TEST(MemberStateTest, FinishIsToldOnlyWithTheLastSteps) {
  MemberState state = MakeWorker();
  const int64_t steps = StepReports::kPerHeartbeat + 1;
  for (int64_t step = 1; step <= steps; ++step) state.ReportStep(Report(step));
  state.Finish();
  const v1::HeartbeatRequest first = state.NextHeartbeat();
  EXPECT_FALSE(first.finished());
  state.OnAnswer(
      first, Answer(v1::JOB_PHASE_RUNNING, {}, StepReports::kPerHeartbeat), 1);
  EXPECT_FALSE(state.finish_acknowledged());
  EXPECT_TRUE(state.Urgent());
  const v1::HeartbeatRequest last = state.NextHeartbeat();
  EXPECT_TRUE(last.finished());
  state.OnAnswer(last, Answer(v1::JOB_PHASE_RUNNING, {}, 1), 2);
  EXPECT_TRUE(state.finish_acknowledged());
  EXPECT_FALSE(state.Urgent());
}

TEST(MemberStateTest, FinishIsNotAcknowledgedWhenStepsWereLeftBehind) {
  MemberState state = MakeWorker();
  state.ReportStep(Report(1));
  state.Finish();
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING, {}, 0),
                 1);
  EXPECT_FALSE(state.finish_acknowledged());
  EXPECT_FALSE(state.Urgent()) << "a full coordinator is asked at intervals";
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING, {}, 1),
                 2);
  EXPECT_TRUE(state.finish_acknowledged());
}

TEST(MemberStateTest, FullQueueHoldsTheNextStepBack) {
  MemberState state = MakeWorker();
  const int64_t steps = kMaxWaitingReports;
  for (int64_t step = 1; step <= steps; ++step) state.ReportStep(Report(step));
  EXPECT_EQ(state.Check(steps + 1), MemberState::Gate::kWait);
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING, {}, 1),
                 1);
  EXPECT_EQ(state.Check(steps + 1), MemberState::Gate::kOpen);
}

TEST(MemberStateTest, WeightsAreWantedOfOneThatHasFinished) {
  MemberState state = MakeWorker();
  v1::HeartbeatResponse wants = Answer(v1::JOB_PHASE_RUNNING);
  wants.set_wants_weights(true);
  state.OnAnswer(state.NextHeartbeat(), wants, 1);
  EXPECT_FALSE(state.wants_weights());
  state.Finish();
  state.OnAnswer(state.NextHeartbeat(), wants, 1);
  EXPECT_TRUE(state.wants_weights());
  state.GiveWeights();
  EXPECT_FALSE(state.wants_weights());
}

TEST(MemberStateTest, OnlyRanksOfTheJobAreTakenOver) {
  v1::RegisterResponse place = Place();
  place.mutable_job()->mutable_cluster()->set_workers(3);
  MemberState state(v1::ROLE_WORKER, place, "c:1", 30 * kSecond, 0);
  v1::HeartbeatResponse answer = Answer(v1::JOB_PHASE_RUNNING);
  for (uint32_t rank : {2u, 3u, 4'000'000'000u}) answer.add_adopt_ranks(rank);
  state.OnAnswer(state.NextHeartbeat(), answer, 0);
  EXPECT_EQ(state.adopt_ranks(), std::vector<uint32_t>{2});
}

}  // namespace
}  // namespace tributary
