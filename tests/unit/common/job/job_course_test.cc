// SPDX-License-Identifier: Apache-2.0
#include "common/job/job_course.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

v1::JobSpec CourseJob(int64_t batch_size, int workers = 1) {
  v1::JobSpec job;
  job.mutable_cluster()->set_workers(workers);
  job.mutable_strategy()->mutable_parameter_server();
  job.mutable_data()->set_batch_size(batch_size);
  job.mutable_data()->mutable_shuffle()->set_seed(7);
  job.mutable_training()->set_gradient_accumulation(1);
  return job;
}

// 64 rows in batches of 8; 24 of them are taken after step 3.
DataCourse OfEights() { return DataCourse(StretchOf(CourseJob(8), 64)); }

absl::StatusOr<DataCourse> GoOnAfter3(const v1::JobSpec& job,
                                      int64_t rows = 64) {
  return GoOn(job, OfEights(), 3, StretchOf(job, rows));
}

TEST(JobCourseTest, ABatchIsThatOfAllWorkers) {
  v1::JobSpec job = CourseJob(8, 3);
  EXPECT_EQ(StretchOf(job, 64).global_batch, 24);
  job.mutable_data()->set_global_batch_size(10);
  EXPECT_EQ(StretchOf(job, 64).global_batch, 10);
  job = CourseJob(8, 4);
  job.mutable_strategy()->mutable_tensor_parallel()->set_ranks(2);
  EXPECT_EQ(StretchOf(job, 64).global_batch, 16) << "two replicas";
}

TEST(JobCourseTest, TheSameRowsAStepAreTheSameCourse) {
  v1::JobSpec job = CourseJob(4, 2);  // 8 rows of both workers together
  const auto course = GoOnAfter3(job);
  TRIBUTARY_ASSERT_OK(course);
  EXPECT_EQ(course->stretches().size(), 1u);
  EXPECT_EQ(course->StepsOf(2), 16);
}

// 40 rows are left: three steps of 12 rows and one of 4, then six an epoch.
TEST(JobCourseTest, AnotherBatchTakesTheRowsThatAreLeft) {
  const auto course = GoOnAfter3(CourseJob(12));
  TRIBUTARY_ASSERT_OK(course);
  EXPECT_EQ(course->last().step, 3);
  EXPECT_EQ(course->last().begin.row, 24);
  EXPECT_EQ(course->StepsOf(1), 7);
  EXPECT_EQ(course->StepsOf(2), 13);
  v1::JobSpec job = CourseJob(8);
  job.mutable_training()->set_gradient_accumulation(2);
  EXPECT_EQ(GoOnAfter3(job)->StepsOf(1), 6);  // 16, 16, 8
}

TEST(JobCourseTest, RowsThatWouldComeTwiceOrNeverAreRefused) {
  const auto refused = [](const absl::StatusOr<DataCourse>& course,
                          const std::string& why) {
    EXPECT_THAT(course, StatusIs(absl::StatusCode::kFailedPrecondition, why));
  };
  refused(GoOnAfter3(CourseJob(8, 2)),
          "the checkpoint is 24 rows into epoch 1, which is not a multiple of "
          "the global batch of 16 rows, so rows would be used twice or never; "
          "continue with --set data.global_batch_size=8, or take a checkpoint "
          "of the end of an epoch");
  refused(GoOnAfter3(CourseJob(8), 80),
          "which has 64 rows; there are 80 rows now");
  v1::JobSpec job = CourseJob(8);
  job.mutable_data()->mutable_shuffle()->set_seed(8);
  refused(GoOnAfter3(job),
          "with the order \"shuffle: {seed: 8}\" some rows would");
  job.mutable_data()->mutable_shuffle()->set_none(true);
  refused(GoOnAfter3(job), "with the order \"shuffle: none\" some rows would");
}

// A batch of eight rows has one for each of at most eight replicas.
TEST(JobCourseTest, TheRemedyHasNoMoreWorkersThanTheBatchHasRows) {
  const auto remedy = [](const v1::JobSpec& job) {
    const std::string message(GoOnAfter3(job).status().message());
    const size_t begin = message.find("never") + 5;
    return message.substr(begin, message.find(", or take") - begin);
  };
  constexpr char kBatch[] = "--set data.global_batch_size=8";
  v1::JobSpec job = CourseJob(1, 9);
  EXPECT_EQ(remedy(job), absl::StrCat("; continue with --workers 8 ", kBatch));
  job.mutable_strategy()->mutable_tensor_parallel()->set_ranks(2);
  job.mutable_cluster()->set_workers(18);
  EXPECT_EQ(remedy(job), absl::StrCat("; continue with --workers 16 ", kBatch));
  job = CourseJob(1, 9);
  job.mutable_model()
      ->add_sequential()
      ->mutable_residual()
      ->add_body()
      ->mutable_batch_norm();
  EXPECT_EQ(remedy(job), absl::StrCat("; continue with --workers 4 ", kBatch));
  job = CourseJob(2, 10);
  job.mutable_strategy()->mutable_pipeline_parallel()->set_stages(2);
  job.mutable_strategy()->mutable_pipeline_parallel()->set_micro_batches(4);
  EXPECT_EQ(remedy(job), absl::StrCat("; continue with --workers 4 ", kBatch));
  job = CourseJob(1, 9);
  job.mutable_strategy()
      ->mutable_parameter_server()
      ->mutable_sync()
      ->mutable_bsp()
      ->set_backup_workers(8);
  EXPECT_EQ(remedy(job), "");
}

TEST(JobCourseTest, AtTheEndOfAnEpochEverythingMayChange) {
  v1::JobSpec job = CourseJob(5, 3);
  job.mutable_data()->mutable_shuffle()->set_none(true);
  const auto course = GoOn(job, OfEights(), 8, StretchOf(job, 80));
  TRIBUTARY_ASSERT_OK(course);
  EXPECT_EQ(course->After(8).epoch, 1);
  EXPECT_EQ(course->StepsOf(2), 8 + 6);  // 80 rows in batches of 15
}

TEST(JobCourseTest, AMemberThatJoinsLaterFindsTheSameCourse) {
  const v1::JobSpec job = CourseJob(12);
  const DataCourse first = *GoOnAfter3(job);
  const auto again = GoOn(job, first, 3, StretchOf(job, 64));
  TRIBUTARY_ASSERT_OK(again);
  EXPECT_EQ(again->stretches().size(), 2u);
  EXPECT_EQ(again->StepsOf(2), first.StepsOf(2));
}

TEST(JobCourseTest, ItIsTheSameAfterAManifest) {
  v1::CheckpointManifest manifest;
  CourseToProto(*GoOnAfter3(CourseJob(12)), manifest.mutable_course());
  EXPECT_EQ(CourseOf(manifest).StepsOf(2), 13);
  manifest.mutable_course(1)->set_row(23);
  EXPECT_THAT(CourseFromProto(manifest.course()),
              StatusIs(absl::StatusCode::kInvalidArgument, "contradicts"));
}

// An earlier version has recorded 8 steps an epoch: 57 to 64 rows.
TEST(JobCourseTest, AnOldManifestsCourseFollowsFromItsJob) {
  v1::CheckpointManifest manifest;
  *manifest.mutable_job() = CourseJob(8);
  manifest.set_steps_per_epoch(8);
  const DataCourse old = CourseOf(manifest);
  const auto go_on = [&](const v1::JobSpec& job, int64_t rows) {
    return GoOn(job, old, 3, StretchOf(job, rows));
  };
  TRIBUTARY_ASSERT_OK(go_on(CourseJob(8), 60));
  EXPECT_EQ(go_on(CourseJob(8), 60)->StepsOf(2), 16);
  EXPECT_EQ(go_on(CourseJob(12), 60)->StepsOf(1), 6);  // 24 + 3 * 12
  EXPECT_FALSE(go_on(CourseJob(16), 60).ok());
  for (int64_t rows : {56, 65}) {
    EXPECT_THAT(go_on(CourseJob(8), rows),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         "which has at most 64 rows"))
        << rows;
  }
  manifest.mutable_job()->mutable_program();
  EXPECT_TRUE(CourseOf(manifest).empty());
}

TEST(JobCourseTest, AnOldManifestOfAStreamGoesOnWithTheSameBuffer) {
  v1::CheckpointManifest manifest;
  *manifest.mutable_job() = CourseJob(8);
  manifest.mutable_job()->mutable_data()->mutable_stream()->set_buffer_bytes(
      100);
  manifest.set_steps_per_epoch(8);
  v1::JobSpec job = manifest.job();
  DataStretch now = StretchOf(job, 64);
  now.order += ", in windows";  // which the worker knows
  TRIBUTARY_ASSERT_OK(GoOn(job, CourseOf(manifest), 3, now));
  job.mutable_data()->mutable_stream()->set_buffer_bytes(200);
  EXPECT_FALSE(GoOn(job, CourseOf(manifest), 3, now).ok());
}

}  // namespace
}  // namespace tributary
