// SPDX-License-Identifier: Apache-2.0
// A member's reports of its checkpoint files and snapshots.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/common/member/member_state_fixture.h"

namespace tributary {
namespace {

TEST(MemberCheckpointsTest, TheSnapshotThatIsWantedIsThatOfThePlanInForce) {
  MemberState state = MakeWorker();
  state.OnPlan(2, 0);
  v1::HeartbeatResponse answer = Answer(v1::JOB_PHASE_RUNNING);
  answer.set_plan_epoch(2);
  answer.set_cut_step(64);
  answer.set_cut_is_best(true);
  state.OnAnswer(state.NextHeartbeat(), answer, 1);
  EXPECT_EQ(state.wanted_cut().step, 64);
  EXPECT_TRUE(state.wanted_cut().best);
  state.OnPlan(3, 0);
  EXPECT_EQ(state.wanted_cut().step, 0) << "the steps are computed again";
  state.OnAnswer(state.NextHeartbeat(), answer, 2);
  EXPECT_EQ(state.wanted_cut().step, 0) << "a late answer of the old plan";
}

TEST(MemberCheckpointsTest, ASnapshotThatIsTakenIsToldAtOnce) {
  MemberState state = MakeWorker();
  state.OnPlan(2, 0);
  state.OnAnswer(state.NextHeartbeat(), Answer(v1::JOB_PHASE_RUNNING), 1);
  EXPECT_FALSE(state.Urgent());
  state.ReportCut(64);
  EXPECT_TRUE(state.Urgent());
  EXPECT_EQ(state.NextHeartbeat().cut_step(), 64);
  EXPECT_FALSE(state.Urgent());
  EXPECT_EQ(state.NextHeartbeat().cut_step(), 64) << "for another coordinator";
  state.OnPlan(3, 0);
  EXPECT_EQ(state.NextHeartbeat().cut_step(), 0);
}

TEST(MemberCheckpointsTest, ReportsOfCheckpointsThatWaitAreBounded) {
  MemberState state(v1::ROLE_SERVER, Place(), "c:1", 30 * kSecond, 0);
  v1::CheckpointReport report;
  for (int step = 1; step <= 1000; ++step) {
    report.set_step(step);
    report.clear_file();
    if (step % 500 == 0) report.mutable_file()->set_name("f");
    state.ReportCheckpoint(report);
  }
  const v1::HeartbeatRequest request = state.NextHeartbeat();
  ASSERT_EQ(request.checkpoints_size(), 64);
  EXPECT_EQ(request.checkpoints(0).step(), 500) << "files before failures";
  EXPECT_EQ(request.checkpoints(1).step(), 938);
  EXPECT_EQ(request.checkpoints(63).step(), 1000)
      << "the newest is always told";
}

TEST(MemberCheckpointsTest, TheLastReportOfThePlanIsToldAfterItWasTaken) {
  MemberState state(v1::ROLE_SERVER, Place(), "c:1", 30 * kSecond, 0);
  state.OnPlan(2, 0);
  EXPECT_EQ(state.NextHeartbeat().checkpointed_step(), 0);
  v1::CheckpointReport report;
  report.set_plan_epoch(2);
  report.set_step(8);
  state.ReportCheckpoint(report);
  v1::HeartbeatResponse answer = Answer(v1::JOB_PHASE_RUNNING);
  answer.set_checkpoints_taken(1);
  state.OnAnswer(state.NextHeartbeat(), answer, 1);
  EXPECT_EQ(state.NextHeartbeat().checkpoints_size(), 0);
  EXPECT_EQ(state.NextHeartbeat().checkpointed_step(), 8);
  state.OnPlan(3, 0);
  EXPECT_EQ(state.NextHeartbeat().checkpointed_step(), 0);
}

TEST(MemberCheckpointsTest, TheReportOfTheBestWeightsIsNotLeftOut) {
  MemberState state(v1::ROLE_SERVER, Place(), "c:1", 30 * kSecond, 0);
  v1::HeartbeatResponse answer = Answer(v1::JOB_PHASE_RUNNING);
  answer.set_cut_step(1);
  answer.set_cut_is_best(true);
  state.OnAnswer(state.NextHeartbeat(), answer, 1);
  v1::CheckpointReport report;
  report.mutable_file()->set_name("f");
  for (int step = 1; step <= 100; ++step) {
    report.set_step(step);
    state.ReportCheckpoint(report);
  }
  const v1::HeartbeatRequest request = state.NextHeartbeat();
  ASSERT_EQ(request.checkpoints_size(), 64);
  EXPECT_EQ(request.checkpoints(0).step(), 1);
  EXPECT_EQ(request.checkpoints(1).step(), 38);
}

TEST(MemberCheckpointsTest,
     ReportsAreTakenByTheirStepWhateverWasLeftOutMeanwhile) {
  MemberState state(v1::ROLE_SERVER, Place(), "c:1", 30 * kSecond, 0);
  v1::CheckpointReport report;
  for (int step = 1; step <= 64; ++step) {
    report.set_step(step);
    state.ReportCheckpoint(report);
  }
  const v1::HeartbeatRequest request = state.NextHeartbeat();
  report.set_step(65);
  state.ReportCheckpoint(report);  // 1 is left out
  v1::HeartbeatResponse answer;
  answer.set_checkpoints_taken(64);
  state.OnAnswer(request, answer, 0);
  const v1::HeartbeatRequest next = state.NextHeartbeat();
  ASSERT_EQ(next.checkpoints_size(), 1);
  EXPECT_EQ(next.checkpoints(0).step(), 65);
}

}  // namespace
}  // namespace tributary
