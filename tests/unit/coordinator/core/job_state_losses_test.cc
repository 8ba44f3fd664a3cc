// SPDX-License-Identifier: Apache-2.0
// The effects of the loss of members on a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/job_state_fixture.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(JobStateTest, LostWorkerFailsAJobThatSaysSoByNameStepAndSeconds) {
  on_worker_loss_ = v1::WORKER_LOSS_FAIL;
  Run(2);
  Send(1, {.begun = 12});
  for (int i = 0; i < 10; ++i) {
    Pass(1);
    Send(0, {.begun = 13});
    BeatServer();
  }
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_RUNNING);
  Pass(1);
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(state_->life().message(),
            "worker 1 (node-w1, pid 7) was lost, last heard at step 12: no "
            "heartbeat for "
            "11.0 s");
}

TEST_F(JobStateTest, LostWorkersPlaceWaitsAndThenFailsTheJob) {
  Run(2);
  Send(1, {.begun = 12});
  const auto pass = [this](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      Pass(1);
      Send(0, {.begun = 13});
      BeatServer();
    }
  };
  pass(11);
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_THAT(
      state_->TakeNotices(),
      ElementsAre(
          "worker 1 (node-w1, pid 7) was lost, last heard at step 12: no "
          "heartbeat for 11.0 s"));
  pass(5);
  EXPECT_EQ(state_->WaitsFor(now_).text(),
            "waiting for a process in the place of worker 1 (node-w1, pid 7), "
            "lost 5.0 s ago, last heard at step 12");
  pass(25);
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(state_->life().message(),
            "worker 1 (node-w1, pid 7) was lost, last heard at step 12, and "
            "nobody has "
            "taken its place for 30.0 s");
}

TEST_F(JobStateTest, AnotherProcessTakesALostWorkersPlaceAndThePlanStays) {
  Run(2);
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 1, /*pid=*/7, "killed",
                                        now_),
            LossVerdict::kReplace);
  const auto before = workers_[1].incarnation();
  workers_[1] = Join(v1::ROLE_WORKER, "other");
  EXPECT_EQ(workers_[1].index(), 1u);
  EXPECT_GT(workers_[1].incarnation(), before);
  EXPECT_EQ(state_->WaitsFor(now_).text(), "");
  EXPECT_EQ(state_->plan()->epoch(), 1u);
  EXPECT_EQ(state_->losses().workers_lost(), 1u);
  EXPECT_THAT(state_->TakeNotices(),
              ElementsAre(HasSubstr("was lost, last heard at step 0: killed"),
                          "worker 1 (node-other, pid 7) takes its place"));
}

// A server that begins with the plan knows no earlier holder of a rank.
TEST_F(JobStateTest, APlanSaysWhichHoldersOfItsRanksCount) {
  Run(3);
  EXPECT_THAT(state_->plan()->incarnations(),
              ElementsAre(workers_[0].incarnation(), workers_[1].incarnation(),
                          workers_[2].incarnation()));
  state_->losses().MemberLost(v1::ROLE_WORKER, 1, /*pid=*/7, "killed", now_);
  state_->losses().MemberLost(v1::ROLE_WORKER, 2, /*pid=*/7, "killed", now_);
  const v1::RegisterResponse next = Join(v1::ROLE_WORKER, "other");
  ASSERT_EQ(next.index(), 1u);
  state_->losses().MemberLost(v1::ROLE_SERVER, 0, /*pid=*/7, "killed", now_);
  Join(v1::ROLE_SERVER, "another");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_THAT(state_->plan()->incarnations(),
              ElementsAre(workers_[0].incarnation(), next.incarnation(),
                          workers_[2].incarnation() + 1));
}

TEST_F(JobStateTest, AWorkerThatLeavesFreesItsPlaceAtOnce) {
  Run(2);
  Send(1, {.begun = 12, .last_step = 12});
  Send(1, {.begun = 12, .last_step = 12, .leaving = "it got SIGTERM"});
  EXPECT_EQ(state_->losses().workers_lost(), 1u);
  workers_[1] = Join(v1::ROLE_WORKER, "spare");
  EXPECT_EQ(workers_[1].index(), 1u);
  EXPECT_EQ(state_->plan()->epoch(), 1u);
  EXPECT_THAT(state_->TakeNotices(),
              ElementsAre("worker 1 (node-w1, pid 7) was lost, last heard at "
                          "step 12: it gave its "
                          "place back: it got SIGTERM",
                          "worker 1 (node-spare, pid 7) takes its place"));
}

TEST_F(JobStateTest, AShrinkingJobGivesALostRankToTheLeastLoadedWorker) {
  on_worker_loss_ = v1::WORKER_LOSS_SHRINK;
  Run(3);
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 0, 7, "killed", now_),
            LossVerdict::kGoesOn);
  EXPECT_THAT(Send(1, {}).adopt_ranks(), ElementsAre(0));
  EXPECT_THAT(Send(2, {}).adopt_ranks(), ElementsAre());
  workers_[0] = Join(v1::ROLE_WORKER, "adopter");
  EXPECT_THAT(Send(1, {}).adopt_ranks(), ElementsAre());
  EXPECT_EQ(state_->plan()->epoch(), 1u);
}

// The process was stopped, its rank taken over, and it was killed for that.
TEST_F(JobStateTest, AProcessWhoseRankIsTakenOverIsNotMissed) {
  on_worker_loss_ = v1::WORKER_LOSS_SHRINK;
  Run(2);
  LetTheLeaseOfWorker0RunOut();
  workers_[0] = Join(v1::ROLE_WORKER, "adopter", "node-w1");
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 0, /*pid=*/0, "killed",
                                        now_),
            LossVerdict::kGoesOn);
  EXPECT_FALSE(state_->life().over());
  EXPECT_EQ(state_->losses().workers_lost(), 1u);
}

TEST_F(JobStateTest, TheLastWorkerOfAShrinkingJobIsReplaced) {
  on_worker_loss_ = v1::WORKER_LOSS_SHRINK;
  Run(2);
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 0, 7, "killed", now_),
            LossVerdict::kGoesOn);
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 1, 7, "killed", now_),
            LossVerdict::kReplace);
  workers_[0] = Join(v1::ROLE_WORKER, "another");
  Pass(1);
  EXPECT_THAT(Send(0, {}).adopt_ranks(), ElementsAre(1));
}

// No process is left then, although the lease of the adopted rank still runs.
TEST_F(JobStateTest, AProcessIsLostWithTheRanksThatItHasTakenOver) {
  on_worker_loss_ = v1::WORKER_LOSS_SHRINK;
  Run(2);
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 0, 7, "killed", now_),
            LossVerdict::kGoesOn);
  workers_[0] = Join(v1::ROLE_WORKER, "adopter", "node-w1");
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 1, 7, "killed", now_),
            LossVerdict::kReplace);
  EXPECT_EQ(state_->losses().workers_lost(), 3u);
  workers_[0] = Join(v1::ROLE_WORKER, "another");
  Pass(1);
  EXPECT_THAT(Send(0, {}).adopt_ranks(), ElementsAre(1));
}

// A process on another host is seen to end only by its launcher. By then a
// process that lives has taken the rank over.
TEST_F(JobStateTest, WhoHasTakenARankOverIsNotLostWithItsLauncher) {
  on_worker_loss_ = v1::WORKER_LOSS_SHRINK;
  Run(2);
  LetTheLeaseOfWorker0RunOut();
  workers_[0] = Join(v1::ROLE_WORKER, "adopter", "node-w1");
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 0, 7, "killed", now_),
            LossVerdict::kGoesOn);
  EXPECT_EQ(state_->losses().workers_lost(), 1u);
  EXPECT_EQ(state_->WaitsFor(now_).text(), "");
}

// In containers, processes of several hosts may all have number 1; here 7.
TEST_F(JobStateTest, ProcessesOfDifferentHostsAreDifferent) {
  on_worker_loss_ = v1::WORKER_LOSS_SHRINK;
  Run(4);
  state_->losses().MemberLost(v1::ROLE_WORKER, 0, 7, "killed", now_);
  EXPECT_THAT(Send(1, {}).adopt_ranks(), ElementsAre(0));
  workers_[0] = Join(v1::ROLE_WORKER, "adopter", "node-w1");
  state_->losses().MemberLost(v1::ROLE_WORKER, 3, 7, "killed", now_);
  EXPECT_THAT(Send(2, {}).adopt_ranks(), ElementsAre(3));
}

TEST_F(JobStateTest, ALostServerTakesEverybodyBackToTheCheckpoint) {
  Run(2);
  Send(0, {.begun = 25});
  state_->plans().SetRestorePoint(20, "/checkpoints/step-20");
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_),
            LossVerdict::kReplace);
  EXPECT_EQ(state_->plan()->epoch(), 1u) << "the place is empty";
  Join(v1::ROLE_SERVER, "t");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->plan()->start_step(), 20);
  EXPECT_EQ(state_->plan()->restore_from(), "/checkpoints/step-20");
  EXPECT_EQ(state_->plan()->servers(0), "t:7000");
  EXPECT_EQ(state_->plans().rollbacks(), 1u);
  EXPECT_THAT(
      state_->TakeNotices(),
      ElementsAre(
          HasSubstr("server 0 (node-s, pid 7) was lost, last heard at step "
                    "25: killed"),
          HasSubstr("takes its place"),
          "everybody goes back to step 20, checkpoint "
          "/checkpoints/step-20"));
}

TEST_F(JobStateTest, WhatIsSaidOfAnEarlierPlanEndsNothing) {
  Run(1);
  v1::HeartbeatRequest late;
  late.set_role(v1::ROLE_WORKER);
  late.set_incarnation(workers_[0].incarnation());
  late.set_plan_epoch(1);
  late.set_finished(true);
  state_->losses().MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_);
  Join(v1::ROLE_SERVER, "t");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->Apply(late, 0, 100).plan_epoch(), 2u);
  EXPECT_FALSE(state_->membership().AllWorkersFinished());
}

TEST_F(JobStateTest, AServerThatComesBackToItsAddressReplacesItself) {
  Run(1);
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_SERVER);
  request.set_instance("s again");
  request.set_host("node-s");
  request.set_pid(8);
  request.set_address("s:7000");
  EXPECT_EQ(state_->Register(request, now_).status().code(),
            absl::StatusCode::kAlreadyExists)
      << "the server that lives keeps its place";
  BeatServer();
  now_ += kSecond;  // ten heartbeats are missing; the lease lasts ten seconds
  ASSERT_TRUE(state_->Register(request, now_).ok());
  EXPECT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->losses().servers_lost(), 1u);
}

TEST_F(JobStateTest, FinishedWorkerMayLeaveButIsWantedAfterAServersLoss) {
  Run(1);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  EXPECT_TRUE(state_->membership().AllWorkersFinished());
  for (int i = 0; i < 20; ++i) {
    Pass(1);
    BeatServer();
  }
  EXPECT_EQ(state_->losses().workers_lost(), 0u);
  state_->losses().MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_);
  Join(v1::ROLE_SERVER, "t");
  EXPECT_FALSE(state_->membership().AllWorkersFinished());
  EXPECT_EQ(state_->losses().workers_lost(), 1u);
}

TEST_F(JobStateTest, CoordinatorThatWasAwayItselfBlamesNobody) {
  Run(1);
  state_->Tick(now_ = kSecond);
  state_->Tick(now_ = 300 * kSecond);  // stopped and continued
  EXPECT_EQ(state_->losses().workers_lost() + state_->losses().servers_lost(),
            0u);
  Pass(11);
  EXPECT_EQ(state_->losses().workers_lost() + state_->losses().servers_lost(),
            2u)
      << "later it may again";
}

TEST_F(JobStateTest, ReportedErrorFailsTheJobAtOnceAndTheFirstReasonStays) {
  Run(2);
  v1::HeartbeatRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_index(1);
  request.set_incarnation(workers_[1].incarnation());
  request.set_error("train.gz ends in the middle of an image");
  state_->Apply(request, 0, 0);
  state_->life().Fail("something later");
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(state_->life().message(),
            "worker 1 (node-w1, pid 7) failed: train.gz ends in the middle of "
            "an image");
}

}  // namespace
}  // namespace tributary
