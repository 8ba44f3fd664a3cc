// SPDX-License-Identifier: Apache-2.0
// Batch norms in the job file, and the preset that is made of them.
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/layers/model_parameters.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/testing/paths.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

using ::google::protobuf::util::MessageDifferencer;

constexpr char kNormAfterTheFirst[] = "    - batch_norm: {features: 8}";

TEST(BatchNormJobTest, DefaultsArePytorchsAndStandInTheResolvedJob) {
  const v1::JobSpec job = Parse(JobWith(4, kNormAfterTheFirst));
  const v1::BatchNormSpec& norm = job.model().sequential(1).batch_norm();
  EXPECT_EQ(norm.momentum(), 0.1);
  EXPECT_EQ(norm.epsilon(), 1e-5);
  const v1::JobSpec again = Parse(JobToYaml(job));
  EXPECT_TRUE(MessageDifferencer::Equals(job, again)) << JobToYaml(job);
}

TEST(BatchNormJobTest, RunningAveragesAreAmongTheParameters) {
  const v1::JobSpec job =
      Parse(JobWith(4, "    - batch_norm: {features: 8, momentum: 0.25}"));
  const ParameterSpecs parameters = ModelParameters(job.model());
  ASSERT_EQ(parameters.size(), 8u);
  EXPECT_EQ(parameters[4].name, "1.running_mean");
  EXPECT_EQ(parameters[5].name, "1.running_var");
  for (size_t p = 0; p < parameters.size(); ++p) {
    EXPECT_EQ(parameters[p].running_momentum, p == 4 || p == 5 ? 0.25 : 0)
        << parameters[p].name;
  }
}

struct Lone {
  std::vector<std::string> overrides;
  const char* error;
};

TEST(BatchNormJobTest, ASampleAloneIsNoBatch) {
  const std::string path = "job.yaml:4: model.sequential.1.batch_norm ";
  const std::string job = JobWith(4, kNormAfterTheFirst);
  for (const Lone& lone : std::vector<Lone>{
           {{"data.batch_size=1"},
            "wants at least 2 samples in every worker's batch, got 1"},
           {{"data.batch_size=4", "cluster.workers=2",
             "strategy.pipeline_parallel={stages: 2, micro_batches: 4}"},
            "wants at least 2 samples in every micro-batch, got 1"}}) {
    const auto refused = ParseJob(job, "job.yaml", lone.overrides);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().message(), path + lone.error);
  }
  Parse(job, {"data.batch_size=2"});
  Parse(JobWith(0, ""), {"data.batch_size=1"});
}

// In an image every pixel counts.
TEST(BatchNormJobTest, OneImageIsABatch) {
  Parse(JobWith(0, ""), {"model={resnet: {classes: 1}}", "data.batch_size=1"});
}

// 2 + 2 stages x 2 blocks x 2 convolutions. The shortcut is the identity where
// the shape stays.
TEST(PresetTest, AResnetIsStagesOfResidualsThatHalveTheImage) {
  const v1::JobSpec job =
      Parse(JobWith(0, ""),
            {"model={resnet: {in_channels: 3, depth: 10, channels: [4, 6], "
             "classes: 1}}"});
  const v1::ModelSpec& model = job.model();
  EXPECT_FALSE(model.has_resnet());
  ASSERT_EQ(model.sequential_size(), 13);  // stem 3, 4 x 2, pool and classes
  EXPECT_EQ(model.sequential(0).conv2d().in(), 3);
  EXPECT_TRUE(model.sequential(1).has_batch_norm());
  EXPECT_TRUE(model.sequential(2).has_relu());
  for (int block = 0; block < 4; ++block) {
    const v1::ResidualSpec& residual =
        model.sequential(3 + 2 * block).residual();
    ASSERT_EQ(residual.body_size(), 5);
    const bool halves = block == 2;
    const v1::Conv2dSpec& first = residual.body(0).conv2d();
    EXPECT_EQ(first.stride(0), halves ? 2 : 1) << block;
    EXPECT_EQ(first.out(), block < 2 ? 4 : 6);
    EXPECT_EQ(first.padding(0), 1);
    EXPECT_FALSE(first.bias());
    EXPECT_EQ(residual.body(3).conv2d().stride(0), 1);
    ASSERT_EQ(residual.shortcut_size(), halves ? 2 : 0);
    if (halves) {
      EXPECT_EQ(residual.shortcut(0).conv2d().kernel(0), 1);
      EXPECT_EQ(residual.shortcut(0).conv2d().stride(0), 2);
      EXPECT_TRUE(residual.shortcut(1).has_batch_norm());
    }
    EXPECT_TRUE(model.sequential(4 + 2 * block).has_relu());
  }
  EXPECT_TRUE(model.sequential(11).has_global_avg_pool());
  EXPECT_EQ(model.sequential(12).linear().in(), 6);
  const v1::JobSpec again = Parse(JobToYaml(job));
  EXPECT_TRUE(MessageDifferencer::Equals(job, again)) << JobToYaml(job);
}

// He et al. 2016, table 6: ResNet-20 has 0.27 M parameters, ResNet-110 1.7 M.
TEST(PresetTest, AResnetHasThePapersSize) {
  const std::string any_file = testing::SourceFile("README.md");
  for (const auto& [depth, millions] : {std::pair(20, 0.27), {110, 1.7}}) {
    const v1::JobSpec job =
        Parse(JobWith(0, ""), {"model={resnet: {in_channels: 3, depth: " +
                                   std::to_string(depth) + ", classes: 10}}",
                               "training.loss=cross_entropy",
                               "data.train={npy: {features: " + any_file +
                                   ", labels: " + any_file + "}}"});
    double weights = 0;
    for (const ParameterSpec& parameter : ModelParameters(job.model())) {
      if (!parameter.is_running()) {
        weights += static_cast<double>(parameter.size());
      }
    }
    EXPECT_NEAR(weights / 1e6, millions, 0.05);
  }
}

}  // namespace
}  // namespace tributary
