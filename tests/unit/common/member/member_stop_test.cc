// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/common/member/member_state_fixture.h"

namespace tributary {
namespace {

TEST(MemberStopTest, StoppingPausesAtOnceAndTellsItWithoutWaiting) {
  MemberState state = MakeWorker();
  state.Begin(5);
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_STOPPING), 1);
  EXPECT_EQ(state.Check(6), MemberState::Gate::kWait);
  EXPECT_TRUE(state.Urgent());
  const v1::HeartbeatRequest request = state.NextHeartbeat();
  EXPECT_TRUE(request.paused());
  EXPECT_EQ(request.begun_step(), 5);
  state.OnAnswer(request, Answer(v1::JOB_PHASE_STOPPING), 2);
  EXPECT_FALSE(state.Urgent());
  EXPECT_EQ(state.Check(6), MemberState::Gate::kWait);
}

TEST(MemberStopTest, RunsToTheStopStepAndNoFurther) {
  MemberState state = MakeWorker();
  state.Begin(5);
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_STOPPING), 1);
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_STOPPING, 6), 2);
  EXPECT_EQ(state.Check(6), MemberState::Gate::kOpen);
  state.Begin(6);
  EXPECT_EQ(state.Check(7), MemberState::Gate::kStop);
}

TEST(MemberStopTest, StopBeforeTheFirstStepBeginsNone) {
  MemberState state = MakeWorker();
  state.StartAt(/*plan_epoch=*/0, 0);
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_STOPPING), 1);
  EXPECT_EQ(state.Check(1), MemberState::Gate::kWait);
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_STOPPING, 0), 2);
  EXPECT_EQ(state.Check(1), MemberState::Gate::kStop);
}

v1::HeartbeatResponse Hold(uint64_t number, int64_t step) {
  v1::HeartbeatResponse answer = Answer(v1::JOB_PHASE_RUNNING);
  answer.set_hold(number);
  answer.set_checkpoint_step(step);
  return answer;
}

TEST(MemberStopTest, AHeldWorkerGoesNoFurtherThanTheCheckpoint) {
  MemberState state = MakeWorker();
  state.Begin(5);
  state.OnAnswer(state.NextHeartbeat(), Hold(1, 0), 1);
  EXPECT_EQ(state.Check(6), MemberState::Gate::kWait);
  EXPECT_TRUE(state.Urgent()) << "the others wait for this";
  v1::HeartbeatRequest request = state.NextHeartbeat();
  EXPECT_EQ(request.held(), 1u);
  EXPECT_EQ(request.begun_step(), 5);
  EXPECT_FALSE(request.paused()) << "the job does not stop";
  state.OnAnswer(request, Hold(1, 0), 2);
  EXPECT_FALSE(state.Urgent());
  state.OnAnswer(state.NextHeartbeat(), Hold(1, 6), 3);
  EXPECT_EQ(state.NextHeartbeat().held(), 0u) << "it may go on to step 6";
  EXPECT_TRUE(state.TryToBegin(6)->ok());
  EXPECT_EQ(state.NextHeartbeat().stands_at(), 0) << "not finished";
  EXPECT_FALSE(state.Urgent());
  EXPECT_FALSE(state.TryToBegin(7).has_value());
  EXPECT_TRUE(state.Urgent());
  request = state.NextHeartbeat();
  EXPECT_EQ(request.stands_at(), 6);
  state.OnAnswer(request, Hold(0, 6), 4);
  EXPECT_EQ(state.Check(7), MemberState::Gate::kOpen);
  EXPECT_TRUE(state.TakeAskedCheckpoint(6));
  EXPECT_FALSE(state.TakeAskedCheckpoint(6)) << "written once";
}

TEST(MemberStopTest, ACheckpointIsOwedAlthoughTheNextOneIsAskedFor) {
  MemberState state = MakeWorker();
  state.Begin(5);
  state.OnAnswer(state.NextHeartbeat(), Hold(1, 5), 1);
  state.OnAnswer(state.NextHeartbeat(), Hold(2, 0), 2);
  EXPECT_EQ(state.NextHeartbeat().held(), 2u);
  state.OnAnswer(state.NextHeartbeat(), Hold(2, 7), 3);
  EXPECT_TRUE(state.TakeAskedCheckpoint(5));
  EXPECT_FALSE(state.TakeAskedCheckpoint(6));
  EXPECT_TRUE(state.TakeAskedCheckpoint(7));
}

// A process that takes a lost worker's place hears of the hold before it has
// the plan.
TEST(MemberStopTest, AHoldIsValidBeforeThePlanItsStepIsNot) {
  MemberState state = MakeWorker();
  v1::HeartbeatResponse hold = Hold(1, 5);
  hold.set_plan_epoch(2);
  state.OnAnswer(state.NextHeartbeat(), hold, 1);
  state.StartAt(/*plan_epoch=*/2, 5);
  EXPECT_FALSE(state.TryToBegin(6).has_value());
  EXPECT_EQ(state.NextHeartbeat().stands_at(), 0);
  EXPECT_FALSE(state.TakeAskedCheckpoint(5));
  state.OnAnswer(state.NextHeartbeat(), hold, 2);
  EXPECT_FALSE(state.TryToBegin(6).has_value());
  EXPECT_EQ(state.NextHeartbeat().stands_at(), 5);
  EXPECT_TRUE(state.TakeAskedCheckpoint(5));
  state.StartAt(/*plan_epoch=*/3, 4);
  EXPECT_EQ(state.NextHeartbeat().stands_at(), 0);
  hold.set_hold(0);
  hold.set_plan_epoch(3);
  hold.set_checkpoint_step(0);
  state.OnAnswer(state.NextHeartbeat(), hold, 3);
  EXPECT_EQ(state.Check(5), MemberState::Gate::kOpen);
}

// A replacement must not report the plan's first step if its predecessor has
// begun later ones: the others would stop too early.
TEST(MemberStopTest, AStopWaitsUntilAReplacementKnowsWhatWasBegun) {
  MemberState state = MakeWorker();
  EXPECT_FALSE(state.NextHeartbeat().paused());
  v1::HeartbeatResponse stopping = Answer(v1::JOB_PHASE_STOPPING);
  stopping.set_plan_epoch(1);
  state.OnAnswer(state.NextHeartbeat(), stopping, 1);
  EXPECT_FALSE(state.NextHeartbeat().paused()) << "it has no plan yet";
  state.OnPlan(/*plan_epoch=*/1, /*start_step=*/0);
  EXPECT_FALSE(state.Urgent());
  EXPECT_FALSE(state.NextHeartbeat().paused()) << "it has asked no server yet";
  state.StartAt(1, /*step=*/11, /*begun=*/12);
  EXPECT_TRUE(state.Urgent());
  const v1::HeartbeatRequest request = state.NextHeartbeat();
  EXPECT_TRUE(request.paused());
  EXPECT_EQ(request.begun_step(), 12);
  EXPECT_EQ(request.start_step(), 11);
}

// The stop may have been settled while the worker's place was empty.
TEST(MemberStopTest, NoStepBeginsBeforeTheCoordinatorHasAnswered) {
  MemberState state = MakeWorker();
  EXPECT_TRUE(state.Urgent());
  state.OnPlan(/*plan_epoch=*/1, /*start_step=*/0);
  state.StartAt(1, 4);
  EXPECT_EQ(state.Check(5), MemberState::Gate::kWait);
  v1::HeartbeatResponse settled = Answer(v1::JOB_PHASE_STOPPING, 4);
  settled.set_plan_epoch(1);
  state.OnAnswer(state.NextHeartbeat(), settled, 1);
  EXPECT_EQ(state.Check(5), MemberState::Gate::kStop);
}

TEST(MemberStopTest, AStopOfAnEarlierPlanStopsNothing) {
  MemberState state = MakeWorker();
  state.StartAt(/*plan_epoch=*/1, 0);
  const v1::HeartbeatRequest early = state.NextHeartbeat();
  v1::HeartbeatResponse settled = Answer(v1::JOB_PHASE_STOPPING, 0);
  settled.set_plan_epoch(1);
  state.OnAnswer(early, settled, 1);
  EXPECT_EQ(state.Check(1), MemberState::Gate::kStop);
  state.StartAt(2, 0);
  EXPECT_EQ(state.Check(1), MemberState::Gate::kWait);
  state.OnAnswer(early, settled, 2);  // was under way
  EXPECT_EQ(state.Check(1), MemberState::Gate::kWait);
  settled.set_plan_epoch(2);
  settled.set_stop_step(3);
  state.OnAnswer(state.NextHeartbeat(), settled, 3);
  EXPECT_EQ(state.Check(1), MemberState::Gate::kOpen);
}

}  // namespace
}  // namespace tributary
