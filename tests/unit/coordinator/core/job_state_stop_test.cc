// SPDX-License-Identifier: Apache-2.0
// How all stop at one step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/job_state_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// The ranks are threads of one process, and one rank's last heartbeats told
// more than the other's.
TEST_F(JobStateTest, AStopThatTheWholeGroupDoesNotOutliveKeepsItsFurthestStep) {
  data_parallel_ = true;
  RunGroup(2);
  Send(0, {.begun = 5});
  Send(1, {.begun = 9});
  state_->steps().RequestStop();
  state_->losses().MemberLost(v1::ROLE_WORKER, 0, 7, "killed", now_);
  workers_[0] = Join(v1::ROLE_WORKER, "again", "node-w0");
  workers_[1] = Join(v1::ROLE_WORKER, "again as well", "node-w0");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  Send(0, {.begun = 0, .paused = true});
  EXPECT_EQ(Send(1, {.begun = 0, .paused = true}).stop_step(), 9);
}

// Servers on several hosts need not have one directory, unless the job says so.
TEST_F(JobStateTest, OneHostSharesItsDirectory) {
  host_ = "here";
  const auto directory = [this](const std::string& servers_host) {
    Open(1, 1);
    state_->AllowStart("/run/checkpoints");
    Join(v1::ROLE_SERVER, "s", servers_host);
    EXPECT_TRUE(Declare(Join(v1::ROLE_WORKER, "w", "elsewhere")).ok());
    return state_->plan()->checkpoint_directory();
  };
  EXPECT_EQ(directory("here"), "/run/checkpoints");
  EXPECT_EQ(directory("there"), "");
  checkpoint_every_ = 10;
  EXPECT_EQ(directory("there"), "/run/checkpoints");
}

TEST_F(JobStateTest, AllStopAtTheHighestStepThatAnyHasBegun) {
  Run(3);
  Send(0, {.begun = 5});
  Send(1, {.begun = 6});
  Send(2, {.begun = 5});
  state_->steps().RequestStop();
  EXPECT_FALSE(Send(0, {.begun = 5, .paused = true}).has_stop_step());
  EXPECT_FALSE(Send(1, {.begun = 6, .paused = true}).has_stop_step());
  EXPECT_EQ(Send(2, {.begun = 5, .paused = true}).stop_step(), 6);
  EXPECT_EQ(Send(0, {.begun = 5, .paused = true}).stop_step(), 6);
}

// Servers have weights only after whole rounds.
TEST_F(JobStateTest, AJobOfRoundsStopsAtTheEndOfOne) {
  period_ = 8;
  Run(2);
  state_->steps().RequestStop();
  Send(0, {.begun = 17, .paused = true});
  EXPECT_EQ(Send(1, {.begun = 18, .paused = true}).stop_step(), 24);
}

TEST_F(JobStateTest, TheLastRoundEndsWithTheJob) {
  period_ = 8;
  Run(2);  // 100 steps
  state_->steps().RequestStop();
  Send(0, {.begun = 97, .paused = true});
  EXPECT_EQ(Send(1, {.begun = 98, .paused = true}).stop_step(), 100);
}

TEST_F(JobStateTest, StepBegunBetweenRequestAndPauseCounts) {
  Run(2);
  Send(0, {.begun = 5});
  Send(1, {.begun = 5});
  state_->steps().RequestStop();
  Send(0, {.begun = 5, .paused = true});
  // Worker 1 had not heard yet and began two more.
  EXPECT_FALSE(Send(1, {.begun = 7, .paused = false}).has_stop_step());
  EXPECT_EQ(Send(1, {.begun = 7, .paused = true}).stop_step(), 7);
}

TEST_F(JobStateTest, LateCopyOfAnOldHeartbeatTurnsNothingBack) {
  Run(2);
  state_->steps().RequestStop();
  Send(0, {.begun = 9, .paused = true});
  Send(0, {.begun = 3, .paused = false});  // sent before, delivered after
  EXPECT_EQ(Send(1, {.begun = 8, .paused = true}).stop_step(), 9);
}

TEST_F(JobStateTest, StopStepNeverChangesOnceItIsKnown) {
  Run(1);
  state_->steps().RequestStop();
  EXPECT_EQ(Send(0, {.begun = 4, .paused = true}).stop_step(), 4);
  state_->steps().RequestStop();
  EXPECT_EQ(Send(0, {.begun = 5, .paused = true}).stop_step(), 4);
}

TEST_F(JobStateTest, FinishedWorkerCountsAsPausedAtItsEnd) {
  Run(2);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  Send(1, {.begun = 99});
  state_->steps().RequestStop();
  EXPECT_EQ(Send(1, {.begun = 99, .paused = true}).stop_step(), 100);
  Send(1, {.begun = 100, .finished = true, .last_step = 100});
  EXPECT_TRUE(state_->membership().AllWorkersFinished());
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_STOPPING);
}

TEST_F(JobStateTest, StopBeforeAnyStepStopsAtZero) {
  Run(1);
  state_->steps().RequestStop();
  const v1::HeartbeatResponse orders = Send(0, {.begun = 0, .paused = true});
  ASSERT_TRUE(orders.has_stop_step());
  EXPECT_EQ(orders.stop_step(), 0);
  Send(0, {.begun = 0, .finished = true, .last_step = 0});
  EXPECT_TRUE(state_->membership().AllWorkersFinished());
}

TEST_F(JobStateTest, WorkerMustStopAtTheCommonStep) {
  Run(1);
  state_->steps().RequestStop();
  Send(0, {.begun = 4, .paused = true});
  Send(0, {.begun = 4, .finished = true, .last_step = 3});
  EXPECT_EQ(state_->life().message(),
            "worker 0 (node-w0, pid 7) finished after step 3 of 4");
}

// The steps that were reported before the rollback are made again first.
TEST_F(JobStateTest, AStopAfterARollbackIsNoEarlierThanAnyStepBegunBefore) {
  Run(2);
  Send(0, {.begun = 12});
  state_->steps().RequestStop();
  state_->losses().MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_);
  Join(v1::ROLE_SERVER, "t");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  Send(0, {.begun = 0, .paused = true});
  EXPECT_EQ(Send(1, {.begun = 0, .paused = true}).stop_step(), 12);
  Send(0, {.begun = 12, .finished = true, .last_step = 12});
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_STOPPING)
      << state_->life().message();
}

// A heartbeat of the earlier plan that comes after the rollback brings reports.
TEST_F(JobStateTest, ALateHeartbeatOfTheEarlierPlanCountsForTheStop) {
  Run(1);
  state_->steps().RequestStop();
  state_->losses().MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_);
  Join(v1::ROLE_SERVER, "t");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  v1::HeartbeatRequest late;
  late.set_role(v1::ROLE_WORKER);
  late.set_incarnation(workers_[0].incarnation());
  late.set_plan_epoch(1);
  late.set_begun_step(10);
  EXPECT_FALSE(state_->Apply(late, 9, 9).has_stop_step());
  EXPECT_EQ(Send(0, {.begun = 0, .paused = true}).stop_step(), 10);
}

TEST_F(JobStateTest, AStopThatIsSettledIsKeptForASuccessor) {
  Run(2);
  state_->steps().RequestStop();
  Send(0, {.begun = 6, .paused = true});
  EXPECT_EQ(Send(1, {.begun = 4, .paused = true}).stop_step(), 6);
  Send(0, {.begun = 6, .finished = true, .last_step = 6});
  const v1::CoordinatorState kept = state_->Save();
  const JobState::Options options = state_->options();
  state_.emplace(options, kept, now_);
  EXPECT_EQ(state_->steps().final_step(), 6);
  EXPECT_EQ(Send(1, {.begun = 4, .paused = true}).stop_step(), 6);
}

// A worker that finished before the stop was settled has made all steps, and
// may never be heard again.
TEST_F(JobStateTest, ASuccessorStopsNoEarlierThanWhoHasFinished) {
  Run(2);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  const v1::CoordinatorState kept = state_->Save();
  const JobState::Options options = state_->options();
  state_.emplace(options, kept, now_);
  state_->steps().RequestStop();
  EXPECT_EQ(Send(1, {.begun = 97, .paused = true}).stop_step(), 100);
}

TEST_F(JobStateTest, StopBeforeTheJobRunsEndsIt) {
  Open(1, 1);
  state_->steps().RequestStop();
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_TRUE(state_->steps().stop().by_person());
  EXPECT_THAT(state_->life().message(),
              HasSubstr("stopped before the first step"));
}

TEST_F(JobStateTest, WorkerLostWhileStoppingFailsTheJob) {
  on_worker_loss_ = v1::WORKER_LOSS_FAIL;
  Run(2);
  state_->steps().RequestStop();
  for (int i = 0; i < 11; ++i) {
    Pass(1);
    BeatServer();
    Send(0, {.begun = 1, .paused = true});
  }
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(state_->life().message(), HasSubstr("worker 1"));
}

}  // namespace
}  // namespace tributary
