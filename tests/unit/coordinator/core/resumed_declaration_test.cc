// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/resumed_declaration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"
#include "tests/unit/coordinator/core/job_state_fixture.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

// 64 rows in steps of 8, and after step 3 in steps of 12.
DataCourse WithBatchesOf12() {
  DataCourse course(DataStretch{.rows = 64, .global_batch = 8});
  course.Add({.step = 3, .begin = {0, 24}, .rows = 64, .global_batch = 12});
  return course;
}

TEST(ResumedDeclarationTest, SaysFromWhereOnBatchesAreOthers) {
  EXPECT_EQ(BatchChange(WithBatchesOf12(), 3, 13),
            "from step 4 on, after 24 rows of epoch 1, a step takes 12 rows "
            "instead of 8, and an epoch has 6 steps instead of 8; the job ends "
            "after step 13");
  EXPECT_EQ(BatchChange(WithBatchesOf12(), 5, 13), "")
      << "of an earlier resume";
  EXPECT_EQ(BatchChange(WithBatchesOf12().UpTo(3), 3, 16), "");
  DataCourse fewer_rows(DataStretch{.rows = 64, .global_batch = 8});
  fewer_rows.Add({.step = 8, .begin = {1, 0}, .rows = 48, .global_batch = 8});
  EXPECT_EQ(BatchChange(fewer_rows, 8, 14),
            "from step 9 on, at the beginning of epoch 2, an epoch has 6 steps "
            "instead of 8; the job ends after step 14");
}

v1::JobSpec Cosine(double rate) {
  v1::JobSpec job;
  job.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(
      rate);
  job.mutable_training()->mutable_learning_rate_schedule()->mutable_cosine();
  return job;
}

TEST(ResumedDeclarationTest, SaysThatTheLearningRateJumps) {
  v1::CheckpointManifest manifest;
  *manifest.mutable_job() = Cosine(0.01);
  manifest.set_step(16);
  manifest.set_total_steps(16);
  EXPECT_THAT(RateChange(Cosine(0.01), 32, manifest),
              HasSubstr("in step 16 to 0.005 in step 17; the job now has 32 "
                        "steps and had 16"));
  manifest.set_step(8);
  EXPECT_EQ(RateChange(Cosine(0.01), 16, manifest), "");
  EXPECT_THAT(RateChange(Cosine(0.02), 16, manifest),
              HasSubstr("to 0.01 in step 9, as the job says it now"));
  v1::JobSpec named = Cosine(0.01);
  named.mutable_training()
      ->mutable_learning_rate_schedule()
      ->mutable_cosine()
      ->set_t_max(16);
  *manifest.mutable_job() = named;
  EXPECT_EQ(RateChange(named, 32, manifest),
            "the learning rate stays at 0 after step 16, where its schedule "
            "ends; the job now has 32 steps and had 16");
  EXPECT_EQ(RateChange(named, 16, manifest), "");
  *manifest.mutable_job() = v1::JobSpec();
  manifest.mutable_job()
      ->mutable_training()
      ->mutable_optimizer()
      ->mutable_sgd()
      ->set_learning_rate(0.1);
  EXPECT_EQ(RateChange(manifest.job(), 99, manifest), "") << "constant";
}

TEST(ResumedDeclarationTest, AProgramWithOtherRanksMustKnowItsRows) {
  v1::JobSpec job;
  job.mutable_program();
  job.mutable_cluster()->set_workers(3);
  v1::CheckpointManifest manifest;
  manifest.set_step(5);
  manifest.add_workers();
  manifest.add_workers();
  v1::DeclareModelRequest request;
  TRIBUTARY_EXPECT_OK(CheckCourse(request, job, &manifest));
  EXPECT_THAT(RanksChange(job, manifest), HasSubstr("its 2 ranks"));
  CourseToProto(WithBatchesOf12(), request.mutable_course());
  EXPECT_THAT(CheckCourse(request, job, &manifest),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "so 3 ranks cannot continue from it; continue with "
                       "--workers 2"));
  *manifest.mutable_course() = request.course();
  TRIBUTARY_EXPECT_OK(CheckCourse(request, job, &manifest));
  EXPECT_EQ(RanksChange(job, manifest), "");
  request.mutable_course(1)->set_row(99);
  EXPECT_THAT(CheckCourse(request, job, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, "contradicts"));
}

class JobStateCourseTest : public JobStateTest {
 protected:
  absl::Status DeclareCourse(int worker, const DataCourse& course) {
    course_ = course;
    v1::DeclareModelRequest request = state_->plans().declaration();
    request.set_rank(workers_[worker].index());
    request.set_incarnation(workers_[worker].incarnation());
    CourseToProto(course, request.mutable_course());
    return state_->DeclareModel(request, now_);
  }
  DataCourse course_;
};

TEST_F(JobStateCourseTest, ARankMayAddToTheCourseButNotChangeIt) {
  Run(2);
  EXPECT_EQ(state_->plans().course().steps_per_epoch(), 10) << "as declared";
  TRIBUTARY_ASSERT_OK(DeclareCourse(0, WithBatchesOf12().UpTo(3)));
  EXPECT_EQ(state_->plans().course().steps_per_epoch(), 8);
  TRIBUTARY_ASSERT_OK(DeclareCourse(1, WithBatchesOf12()));
  EXPECT_EQ(state_->plans().course().steps_per_epoch(), 6);
  TRIBUTARY_EXPECT_OK(DeclareCourse(0, WithBatchesOf12().UpTo(3)));
  EXPECT_EQ(state_->plans().course().steps_per_epoch(), 6);
  EXPECT_THAT(
      DeclareCourse(0, DataCourse(DataStretch{.rows = 64, .global_batch = 4})),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               "takes 1 batch of 4 rows in each step, out of 64 rows"));
}

TEST_F(JobStateCourseTest, AMemberThatJoinsAndTheNextCoordinatorLearnIt) {
  Run(2);
  TRIBUTARY_ASSERT_OK(DeclareCourse(0, WithBatchesOf12()));
  state_->losses().MemberLost(v1::ROLE_WORKER, 1, /*pid=*/7, "killed", now_);
  const v1::RegisterResponse place = Join(v1::ROLE_WORKER, "other");
  ASSERT_TRUE(CourseFromProto(place.course()).ok());
  EXPECT_EQ(CourseFromProto(place.course())->StepsOf(2), 13);
  const JobState next(state_->options(), state_->Save(), now_);
  EXPECT_EQ(next.plans().course().StepsOf(2), 13);
}

// Steps before the change were made of other batches.
TEST_F(JobStateCourseTest, NobodyGoesBackToBeforeOtherBatches) {
  Run(2);
  TRIBUTARY_ASSERT_OK(DeclareCourse(0, WithBatchesOf12()));
  state_->GoBack(2, "/my runs/step-2", "it is damaged");
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(state_->life().message(),
              HasSubstr("it is damaged; the batches changed after step 3, so "
                        "the job cannot roll back to step 2 by itself; "
                        "continue with --resume '/my runs/step-2'"));
}

TEST_F(JobStateCourseTest, AJobThatGoesOnTellsWhatHasChanged) {
  auto manifest = std::make_shared<v1::CheckpointManifest>();
  *manifest->mutable_job() = Job(1, 1);
  manifest->set_step(3);
  manifest->set_total_steps(16);
  CourseToProto(WithBatchesOf12().UpTo(3), manifest->mutable_course());
  restored_ = manifest;
  start_step_ = 3;
  Open(1, 1);
  Join(v1::ROLE_SERVER, "s");
  workers_.push_back(Join(v1::ROLE_WORKER, "w"));
  EXPECT_EQ(workers_[0].start_step(), 3);
  EXPECT_EQ(CourseFromProto(workers_[0].course())->StepsOf(1), 8);
  v1::DeclareModelRequest model;
  model.add_parameters()->set_name("w");
  model.mutable_parameters(0)->add_shape(2);
  model.set_incarnation(workers_[0].incarnation());
  model.set_total_steps(13);
  model.set_steps_per_epoch(6);
  CourseToProto(WithBatchesOf12(), model.mutable_course());
  TRIBUTARY_ASSERT_OK(state_->DeclareModel(model, now_));
  EXPECT_THAT(state_->TakeNotices(),
              ElementsAre(HasSubstr("from step 4 on, after 24 rows")));
}

}  // namespace
}  // namespace tributary
