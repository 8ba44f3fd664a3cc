// SPDX-License-Identifier: Apache-2.0
#include "worker/train/measure/measure_compute.h"

#include "common/job/job_file.h"
#include "common/layers/model_costs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kJob[] = R"(
model:
  sequential:
    - linear: {in: 20, out: 8}
    - relu
    - linear: {in: 8, out: 1}
data:
  train: {synthetic: {kind: linear, rows: 50}}
  batch_size: 16
device: cpu
training: {steps: 2, loss: mse, optimizer: {adam: {}}}
)";

TEST(MeasureComputeTest, TellsTheShapeOfTheDataWithoutComputing) {
  const auto job = ParseJob(kJob, "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto measured = MeasureCompute(*job, {});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(measured->sample_shape, ElementsAre(20));
  EXPECT_TRUE(measured->passes.empty());
  EXPECT_GT(measured->process_bytes, 0);
}

TEST(MeasureComputeTest, TimesEveryBatchOnceAndTheUpdate) {
  const auto job = ParseJob(kJob, "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  // More rows than the data have: they come again.
  const auto measured = MeasureCompute(*job, {64, 4, 64});
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_EQ(measured->passes.size(), 2u);
  EXPECT_EQ(measured->passes[0].rows, 4);
  EXPECT_EQ(measured->passes[1].rows, 64);
  EXPECT_GE(measured->peak_bytes, measured->process_bytes);
}

TEST(MeasureComputeTest, AModelThatDoesNotFitItsDataIsRefused) {
  auto job = ParseJob(kJob, "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  job->mutable_model()->mutable_sequential(0)->mutable_linear()->set_in(21);
  EXPECT_THAT(MeasureCompute(*job, {4}).status().message(),
              HasSubstr("layer 0 (linear)"));
}

TEST(MeasureComputeTest, AModelWithMoreOutputsThanTargetsIsRefused) {
  auto job = ParseJob(kJob, "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  job->mutable_model()->mutable_sequential(2)->mutable_linear()->set_out(3);
  EXPECT_THAT(MeasureCompute(*job, {4}).status().message(),
              HasSubstr("wanted one output for each"));
}

}  // namespace
}  // namespace tributary
