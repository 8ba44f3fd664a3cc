// SPDX-License-Identifier: Apache-2.0
// Groups of ranks that break, with and without a loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/job_state_fixture.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobStateGroupsTest : public JobStateTest {
 protected:
  // A second passes in which everybody but `silent` is heard.
  void PassHeard(int silent = -1) {
    now_ += kSecond;
    for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
      if (w != silent) Send(w, {});
    }
    state_->Tick(now_);
  }
};

TEST_F(JobStateGroupsTest, ABrokenGroupIsFormedAnewThoughNobodyIsLost) {
  RunGroup(3);
  state_->plans().SetRestorePoint(20, "/checkpoints/step-20");
  Send(0, {.begun = 25, .broken_group = "rank 1 is gone: reset by peer"});
  EXPECT_EQ(state_->plan()->epoch(), 1u) << "rank 1 may be dead";
  EXPECT_THAT(state_->WaitsFor(now_).text(),
              HasSubstr("until everybody is heard, to form the ranks' groups"));
  PassHeard();
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->plan()->start_step(), 20);
  EXPECT_EQ(state_->losses().workers_lost(), 0u);
  EXPECT_THAT(
      state_->TakeNotices(),
      ElementsAre(
          "worker 0 (node-w0, pid 7) cannot go on with the other ranks: "
          "rank 1 is gone: reset by peer",
          HasSubstr("everybody goes back to step 20")));
}

// The kernel closes a lost rank's connections long before its lease is over.
TEST_F(JobStateGroupsTest, NoPlanNamesARankThatWasNotHeardSinceTheBreak) {
  RunGroup(3);
  Send(0, {.broken_group = "rank 1 is gone"});
  for (int second = 0; second < 12; ++second) {
    EXPECT_EQ(state_->plan()->epoch(), 1u);
    PassHeard(/*silent=*/1);
  }
  EXPECT_EQ(state_->losses().workers_lost(), 1u);
  workers_[1] = Join(v1::ROLE_WORKER, "another");
  PassHeard();
  EXPECT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->plans().rollbacks(), 1u);
}

TEST_F(JobStateGroupsTest, WhatWasBrokenUnderAnEarlierPlanIsNoNews) {
  RunGroup(2);
  Send(0, {.broken_group = "rank 1 is gone"});
  PassHeard();
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  v1::HeartbeatRequest late;
  late.set_role(v1::ROLE_WORKER);
  late.set_index(1);
  late.set_incarnation(workers_[1].incarnation());
  late.set_plan_epoch(1);
  late.set_broken_group_epoch(1);
  state_->Apply(late, 0, 0);
  EXPECT_FALSE(state_->plans().wants_new());
}

TEST_F(JobStateGroupsTest, GroupsThatBreakAgainAndAgainEndTheJobByName) {
  RunGroup(2);
  int breaks = 0;
  while (!state_->life().over() && breaks < 1000) {
    Send(1, {.begun = 1, .broken_group = "cannot connect to rank 0"});
    ++breaks;
    for (int s = 0; s < 15 && state_->plans().wants_new(); ++s) PassHeard();
  }
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_LE(breaks, GroupBreaks::kMost + 1);
  EXPECT_THAT(state_->life().message(),
              HasSubstr("no rank finished a step in between; the last time "
                        "worker 1 (node-w1, pid 7) cannot go on with the other "
                        "ranks: cannot connect to rank 0"));
}

// 500 steps were computed before the first break. The second comes while these
// are computed again, later than groups may stay broken after the first.
TEST_F(JobStateGroupsTest, StepsThatAreComputedAgainAreProgress) {
  RunGroup(2);
  state_->plans().SetRestorePoint(100, "/checkpoints/step-100");
  Send(0, {.begun = 600, .broken_group = "rank 1 is gone"});
  PassHeard();
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  for (int64_t step = 101; step <= 140; ++step) {
    Send(0, {.begun = step});
    PassHeard();
  }
  Send(1, {.begun = 141, .broken_group = "rank 0 is gone"});
  EXPECT_FALSE(state_->life().over()) << state_->life().message();
  PassHeard();
  EXPECT_EQ(state_->plan()->epoch(), 3u);
  // From here on no rank finishes a step.
  for (int s = 0; s < 40 && !state_->life().over(); ++s) {
    Send(1, {.begun = 101, .broken_group = "rank 0 is gone"});
    for (int p = 0; p < 15 && state_->plans().wants_new(); ++p) PassHeard();
  }
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_FAILED);
}

// A loss ends the plan in between, under which steps were finished.
TEST_F(JobStateGroupsTest, StepsBeforeALossAreProgress) {
  RunGroup(2);
  Send(0, {.begun = 25, .broken_group = "rank 1 is gone"});
  for (int p = 0; p < 15 && state_->plans().wants_new(); ++p) PassHeard();
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  for (int64_t step = 1; step <= 200; ++step) {
    Send(0, {.begun = step});
    PassHeard();
  }
  state_->losses().MemberLost(v1::ROLE_WORKER, 1, /*pid=*/7, "killed", now_);
  workers_[1] = Join(v1::ROLE_WORKER, "w1-again");
  for (int p = 0; p < 15 && state_->plans().wants_new(); ++p) PassHeard();
  ASSERT_EQ(state_->plan()->epoch(), 3u);
  Send(0, {.broken_group = "rank 1 is gone"});
  EXPECT_FALSE(state_->life().over()) << state_->life().message();
}

TEST_F(JobStateGroupsTest, GroupsMayBreakAsLongAsTheJobAdvances) {
  RunGroup(2);
  for (int step = 1; step <= 100; ++step) {
    Send(1, {.begun = step, .broken_group = "rank 0 is gone"});
    PassHeard();
    ASSERT_EQ(state_->plan()->epoch(), step + 1u);
  }
  EXPECT_FALSE(state_->life().over());
}

TEST(GroupBreaksTest, GroupsAreFormedAtOnceThenAfterLongerAndLongerPauses) {
  GroupBreaks limit(/*timeout_micros=*/1000 * kSecond);
  std::vector<int64_t> pauses;
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(limit.Add(/*advanced=*/false, /*now_micros=*/i));
    pauses.push_back((limit.RetryMicros(/*heartbeat_micros=*/0) - i) / 1000);
  }
  EXPECT_THAT(pauses,
              ElementsAre(0, 100, 200, 400, 800, 1600, 3200, 6400, 10000));
  EXPECT_TRUE(limit.Add(/*advanced=*/true, 10));
  EXPECT_EQ(limit.RetryMicros(/*heartbeat_micros=*/0), 10);
}

TEST(GroupBreaksTest, TimeEndsItToo) {
  GroupBreaks limit(/*timeout_micros=*/30 * kSecond);
  EXPECT_TRUE(limit.Add(false, 0));
  EXPECT_TRUE(limit.Add(false, 30 * kSecond));
  EXPECT_FALSE(limit.Add(false, 31 * kSecond));
  EXPECT_TRUE(limit.Add(true, 32 * kSecond)) << "a step was finished";
}

}  // namespace
}  // namespace tributary
