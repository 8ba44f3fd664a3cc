// SPDX-License-Identifier: Apache-2.0
// Jobs with error feedback: a lost worker takes its residual with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/job_state_fixture.h"

namespace tributary {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobStateResidualsTest : public JobStateTest {
 protected:
  JobStateResidualsTest() { error_feedback_ = true; }

  LossVerdict Kill(v1::Role role, uint32_t index) {
    return state_->losses().MemberLost(role, index, /*pid=*/7, "killed", now_);
  }
};

TEST_F(JobStateResidualsTest, ALostWorkerTakesEverybodyBackToTheCheckpoint) {
  Run(2);
  Send(1, {.begun = 25});
  state_->plans().SetRestorePoint(20, "/checkpoints/step-20");
  EXPECT_EQ(Kill(v1::ROLE_WORKER, 1), LossVerdict::kReplace);
  EXPECT_TRUE(state_->plans().wants_new());
  EXPECT_EQ(state_->plan()->epoch(), 1u) << "the place is empty";
  workers_[1] = Join(v1::ROLE_WORKER, "other");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->plan()->start_step(), 20);
  EXPECT_EQ(state_->plan()->restore_from(), "/checkpoints/step-20");
  EXPECT_EQ(state_->plans().rollbacks(), 1u);
  EXPECT_THAT(
      state_->TakeNotices(),
      ElementsAre("worker 1 (node-w1, pid 7) was lost, last heard at step 25: "
                  "killed",
                  "worker 1 (node-other, pid 7) takes its place",
                  "everybody goes back to step 20, checkpoint "
                  "/checkpoints/step-20"));
}

TEST_F(JobStateResidualsTest, WithoutACheckpointEverybodyStartsOver) {
  Run(2);
  Send(0, {.begun = 25});
  Kill(v1::ROLE_WORKER, 1);
  workers_[1] = Join(v1::ROLE_WORKER, "other");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->plan()->start_step(), 0);
  EXPECT_THAT(state_->TakeNotices().back(),
              HasSubstr("there is no checkpoint: everybody starts over"));
}

// A plan without worker 1 would let it join while the others train.
TEST_F(JobStateResidualsTest, ANewPlanWaitsForEveryWorkerAfterAServersLoss) {
  Run(2);
  Kill(v1::ROLE_SERVER, 0);
  Kill(v1::ROLE_WORKER, 1);
  server_ = Join(v1::ROLE_SERVER, "t");
  EXPECT_EQ(state_->plan()->epoch(), 1u);
  workers_[1] = Join(v1::ROLE_WORKER, "other");
  EXPECT_EQ(state_->plan()->epoch(), 2u);
}

TEST_F(JobStateResidualsTest, AWorkerThatHadFinishedIsWantedAgain) {
  Run(2);
  Send(1, {.begun = 100, .finished = true, .last_step = 100});
  for (int i = 0; i < 11; ++i) {
    Pass(1);
    BeatServer();
    Send(0, {.begun = 100});
  }
  state_->TakeNotices();
  Kill(v1::ROLE_WORKER, 0);
  EXPECT_THAT(state_->TakeNotices(),
              ElementsAre(HasSubstr("worker 0 (node-w0, pid 7) was lost"),
                          HasSubstr("worker 1 (node-w1, pid 7) had finished "
                                    "and is wanted again")));
  workers_[0] = Join(v1::ROLE_WORKER, "other");
  EXPECT_EQ(state_->plan()->epoch(), 1u);
  workers_[1] = Join(v1::ROLE_WORKER, "again");
  EXPECT_EQ(state_->plan()->epoch(), 2u);
}

// The worker says so again before it hears of the loss, and then it is lost.
TEST_F(JobStateResidualsTest,
       AWorkerThatFinishesUnderAnEndedPlanCanBeReplaced) {
  Run(2);
  Kill(v1::ROLE_WORKER, 0);
  workers_[0] = Join(v1::ROLE_WORKER, "other");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  Kill(v1::ROLE_WORKER, 0);
  Send(1, {.begun = 100, .finished = true, .last_step = 100});
  for (int i = 0; i < 11; ++i) {
    Pass(1);
    BeatServer();
  }
  workers_[1] = Join(v1::ROLE_WORKER, "again");
  workers_[0] = Join(v1::ROLE_WORKER, "third");
  EXPECT_EQ(state_->plan()->epoch(), 3u);
}

TEST_F(JobStateResidualsTest, ARankThatIsTakenOverGoesBackToo) {
  on_worker_loss_ = v1::WORKER_LOSS_SHRINK;
  Run(3);
  EXPECT_EQ(Kill(v1::ROLE_WORKER, 0), LossVerdict::kGoesOn);
  EXPECT_THAT(Send(1, {}).adopt_ranks(), ElementsAre(0));
  EXPECT_EQ(state_->plan()->epoch(), 1u);
  workers_[0] = Join(v1::ROLE_WORKER, "adopter", "node-w1");
  EXPECT_EQ(state_->plan()->epoch(), 2u);
}

TEST_F(JobStateResidualsTest, ASuccessorStillWantsTheNewPlan) {
  Run(2);
  state_->plans().SetRestorePoint(20, "/checkpoints/step-20");
  Kill(v1::ROLE_WORKER, 1);
  const v1::CoordinatorState saved = state_->Save();
  const JobState::Options options = state_->options();
  state_.emplace(options, saved, now_);
  EXPECT_TRUE(state_->plans().wants_new());
  workers_[1] = Join(v1::ROLE_WORKER, "other");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->plan()->start_step(), 20);
}

// Workers are not connected with each other.
TEST_F(JobStateResidualsTest, NoGroupBreaks) {
  Run(2);
  Send(0, {.begun = 5, .broken_group = "a message without meaning"});
  EXPECT_FALSE(state_->plans().wants_new());
}

// The job's steps depend on timing, so that the residual may as well be zero.
TEST_F(JobStateResidualsTest, AWorkerBesideBackupWorkersIsReplacedAlone) {
  backup_workers_ = 1;
  Run(2);
  Kill(v1::ROLE_WORKER, 1);
  EXPECT_FALSE(state_->plans().wants_new());
  workers_[1] = Join(v1::ROLE_WORKER, "other");
  EXPECT_EQ(state_->plan()->epoch(), 1u);
}

class JobStateResumedResidualsTest : public JobStateResidualsTest {
 protected:
  // Opens a resumed job of two workers and returns what it tells first.
  std::vector<std::string> NoticesAfter(
      const v1::CheckpointManifest& manifest) {
    restored_ = std::make_shared<const v1::CheckpointManifest>(manifest);
    Run(2);
    return state_->TakeNotices();
  }
  // A checkpoint of this model with the residuals of `ranks` ranks.
  static v1::CheckpointManifest Manifest(int ranks) {
    v1::CheckpointManifest manifest;
    v1::ParameterSpec* spec = manifest.add_parameters();
    spec->set_name("0.weight");
    spec->add_shape(10);
    spec->add_shape(3);
    for (int rank = 0; rank < ranks; ++rank) manifest.add_residuals();
    return manifest;
  }
};

TEST_F(JobStateResumedResidualsTest, ItTellsThatAJobWithoutThemDropsThem) {
  error_feedback_ = false;
  EXPECT_THAT(NoticesAfter(Manifest(2)),
              Contains(HasSubstr("the residuals of the checkpoint are left "
                                 "out")));
}

TEST_F(JobStateResumedResidualsTest, ItTellsWhyResidualsAreLeftOut) {
  EXPECT_THAT(NoticesAfter(Manifest(0)),
              ElementsAre("every rank begins with a residual of zero: the "
                          "checkpoint has none"));
}

TEST_F(JobStateResumedResidualsTest, ThePoliciesBesideBspTakeUpNone) {
  period_ = 10;
  EXPECT_THAT(NoticesAfter(Manifest(2)),
              ElementsAre("every rank begins with a residual of zero: only bsp "
                          "takes up those of the checkpoint"));
}

// Checkpoints of these policies hold no residuals, so that each resume is told.
TEST_F(JobStateResumedResidualsTest, ThePoliciesBesideBspTellIt) {
  period_ = 10;
  EXPECT_THAT(NoticesAfter(Manifest(0)),
              ElementsAre("every rank begins with a residual of zero: the "
                          "checkpoint has none"));
}

TEST_F(JobStateResumedResidualsTest, ThoseOfOtherRanksAreLeftOut) {
  EXPECT_THAT(NoticesAfter(Manifest(3)),
              ElementsAre("every rank begins with a residual of zero: the "
                          "checkpoint has those of 3 ranks, the job has 2"));
}

TEST_F(JobStateResumedResidualsTest, ThoseOfAnotherMeshAreLeftOut) {
  v1::CheckpointManifest manifest = Manifest(2);
  manifest.mutable_parameters(0)->set_stage(1);
  EXPECT_THAT(NoticesAfter(manifest),
              ElementsAre("every rank begins with a residual of zero: the "
                          "checkpoint has those of another mesh of ranks"));
}

TEST_F(JobStateResumedResidualsTest, ThoseOfTheSameRanksAreTakenUp) {
  EXPECT_THAT(NoticesAfter(Manifest(2)), IsEmpty());
}

TEST_F(JobStateResumedResidualsTest, AJobWithoutErrorFeedbackAsksForNone) {
  error_feedback_ = false;
  EXPECT_THAT(NoticesAfter(Manifest(0)), IsEmpty());
}

}  // namespace
}  // namespace tributary
