// SPDX-License-Identifier: Apache-2.0
#include "server/service/make_training.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

v1::JobSpec SgdJob() {
  v1::JobSpec job;
  job.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(
      0.5);
  job.mutable_training()->set_clip_norm(2);
  job.mutable_checkpoint()->set_every_steps(20);
  return job;
}
v1::SyncSpec& SyncOf(v1::JobSpec& job) {
  return *job.mutable_strategy()->mutable_parameter_server()->mutable_sync();
}

TEST(MakeTrainingTest, TakesTheJobsOptimizerAndKeepsThePreviousWeights) {
  const auto training = MakeTraining(SgdJob(), /*total_steps=*/100);
  TRIBUTARY_ASSERT_OK(training);
  EXPECT_EQ(training->learning_rate(7), 0.5);
  EXPECT_EQ(training->clip_norm, 2);
  EXPECT_TRUE(training->policy->gathers());
  EXPECT_EQ(training->kept_versions, 1);
  EXPECT_EQ(training->nonfinite, NonFiniteAction::kFail);
  EXPECT_EQ(training->steps_an_update, 1);
  EXPECT_EQ(training->checkpoint_every_steps, 20);
  EXPECT_EQ(training->total_steps, 100);
}

TEST(MakeTrainingTest, NeedsNoPreviousWeightsWhereNoWorkerIsReplaced) {
  v1::JobSpec job = SgdJob();
  job.mutable_cluster()->set_on_worker_loss(v1::WORKER_LOSS_FAIL);
  EXPECT_EQ(MakeTraining(job, 100)->kept_versions, 0);
}

TEST(MakeTrainingTest, ADelayKeepsAndSavesOneVersionMore) {
  v1::JobSpec job = SgdJob();
  EXPECT_FALSE(MakeTraining(job, 100)->saves_previous);
  SyncOf(job).mutable_bsp()->set_delay(1);
  EXPECT_EQ(MakeTraining(job, 100)->kept_versions, 2);
  EXPECT_TRUE(MakeTraining(job, 100)->saves_previous);
  job.mutable_cluster()->set_on_worker_loss(v1::WORKER_LOSS_FAIL);
  EXPECT_EQ(MakeTraining(job, 100)->kept_versions, 1);
}

TEST(MakeTrainingTest, StaleWorkersSlowTheirOwnContributionsDown) {
  v1::JobSpec job = SgdJob();
  SyncOf(job).mutable_ssp()->set_scale_by_staleness(true);
  const auto training = MakeTraining(job, 100);
  TRIBUTARY_ASSERT_OK(training);
  EXPECT_FALSE(training->policy->gathers());
  EXPECT_TRUE(training->scale_by_staleness);
  EXPECT_EQ(training->kept_versions, 0);
}

TEST(MakeTrainingTest, TheOuterOptimizerOfLocalSgdIsNotClipped) {
  v1::JobSpec job = SgdJob();
  v1::LocalSgdSpec& local_sgd = *SyncOf(job).mutable_local_sgd();
  local_sgd.set_period(8);
  local_sgd.mutable_outer()->set_learning_rate(0.75);
  const auto training = MakeTraining(job, 100);
  TRIBUTARY_ASSERT_OK(training);
  EXPECT_EQ(training->learning_rate(50), 0.75);
  EXPECT_EQ(training->clip_norm, 0);
  EXPECT_EQ(training->steps_an_update, 8);
}

v1::JobSpec GroupsJob() {
  v1::JobSpec job = SgdJob();
  v1::TrainingSpec& training = *job.mutable_training();
  training.mutable_learning_rate_schedule()->mutable_exponential()->set_gamma(
      0.5);
  v1::ParameterGroupSpec& slow = *training.add_parameter_groups();
  slow.add_parameters("0.*");
  slow.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.25);
  v1::ParameterGroupSpec& frozen = *training.add_parameter_groups();
  frozen.add_parameters("1.*");
  frozen.set_frozen(true);
  return job;
}

TEST(MakeTrainingTest, AGroupFollowsTheScheduleFromItsOwnRate) {
  const auto training = MakeTraining(GroupsJob(), 100);
  TRIBUTARY_ASSERT_OK(training);
  ASSERT_EQ(training->groups.size(), 2u);
  EXPECT_EQ(training->groups[0].learning_rate(2), 0.0625);
  EXPECT_EQ(training->groups[0].optimizer.learning_rate, 0.25);
  EXPECT_FALSE(training->groups[0].frozen);
  EXPECT_TRUE(training->groups[1].frozen);
}

// The workers' optimizer has the groups' constants; frozen parameters stay
// frozen on the servers, too.
TEST(MakeTrainingTest, UnderLocalSgdAllGroupsHaveTheOuterOptimizer) {
  v1::JobSpec job = GroupsJob();
  SyncOf(job).mutable_local_sgd()->mutable_outer()->set_learning_rate(0.75);
  const auto training = MakeTraining(job, 100);
  TRIBUTARY_ASSERT_OK(training);
  ASSERT_EQ(training->groups.size(), 2u);
  for (const ParameterGroup& group : training->groups) {
    EXPECT_EQ(group.learning_rate(2), 0.75);
    EXPECT_TRUE(group.optimizer.takes_running_averages);
  }
  EXPECT_TRUE(training->groups[1].frozen);
}

// The weights that are evaluated there are the snapshot's.
TEST(MakeTrainingTest, WorkersMeetAtCheckpointsAndAtTheCoursesEvaluations) {
  v1::JobSpec job = SgdJob();
  job.mutable_strategy()
      ->mutable_parameter_server()
      ->mutable_sync()
      ->mutable_async();
  job.mutable_checkpoint()->set_every_steps(5);
  job.mutable_evaluation()->set_every_steps(4);
  const DataCourse course(DataStretch{.rows = 7});
  VectorClock slow(2);
  const auto alone = MakeTraining(job, 100),
             meets = MakeTraining(job, 100, course);
  for (const int64_t step : {3, 4, 5, 7, 11, 14}) {
    EXPECT_EQ(alone->policy->MayPull(slow, step), step != 5) << step;
    EXPECT_EQ(meets->policy->MayPull(slow, step), step == 3 || step == 11)
        << step;
  }
}

}  // namespace
}  // namespace tributary
