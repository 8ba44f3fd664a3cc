// SPDX-License-Identifier: Apache-2.0
#include "common/job/job_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

class JobDifferenceTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    for (const char* name : {"a.csv", "b.csv", "test.csv"}) Write(name, "x,y");
  }
  v1::JobSpec Job(const std::vector<std::string>& overrides) {
    return ParseJob(R"(name: one
model: {sequential: [linear: {in: 8, out: 2}]}
data:
  train: {csv: {path: a.csv, columns: {label: y}}}
  test: {csv: {path: test.csv, columns: {label: y}}}
  batch_size: 10
training: {steps: 10, loss: cross_entropy, optimizer: {sgd: {learning_rate: 0.1}}}
)",
                    Path("job.yaml"), overrides)
        .value();
  }
  std::vector<JobDifference> Differences(
      const std::vector<std::string>& overrides) {
    return JobDifferences(Job({}), Job(overrides));
  }
};

auto Is(const std::string& key, const std::string& a, const std::string& b,
        bool matters) {
  return AllOf(Field(&JobDifference::key, key), Field(&JobDifference::a, a),
               Field(&JobDifference::b, b),
               Field(&JobDifference::matters, matters));
}

TEST_F(JobDifferenceTest, EqualJobsHaveNone) {
  EXPECT_THAT(Differences({}), IsEmpty());
}

TEST_F(JobDifferenceTest, NamesTheKeyAsTheJobFileHasIt) {
  EXPECT_THAT(Differences({"training.optimizer.sgd.learning_rate=0.2",
                           "model.sequential.0.linear.out=3"}),
              ElementsAre(Is("model.sequential.0.linear.out", "2", "3", true),
                          Is("training.optimizer.sgd.learning_rate", "0.1",
                             "0.2", true)));
}

TEST_F(JobDifferenceTest, AValueThatOnlyOneHasIsEmptyInTheOther) {
  EXPECT_THAT(Differences({"training.clip_norm=1"}),
              ElementsAre(Is("training.clip_norm", "", "1", true)));
}

TEST_F(JobDifferenceTest, WhatTheWeightsDoNotDependOnDoesNotMatter) {
  EXPECT_THAT(
      Differences({"name=two", "cluster.servers=2", "checkpoint.every_steps=5",
                   "strategy={parameter_server: {bucket_bytes: 1MiB}}",
                   "training.divergence=fail"}),
      ElementsAre(
          Is("checkpoint.every_steps", "", "5", false),
          Is("cluster.servers", "1", "2", false),
          Is("name", "one", "two", false),
          Is("strategy.parameter_server.bucket_bytes", "", "1MiB", false),
          Is("training.divergence", "", "fail", false)));
}

TEST_F(JobDifferenceTest, TheNumberOfWorkersMatters) {
  EXPECT_THAT(Differences({"cluster.workers=2"}),
              ElementsAre(Is("cluster.workers", "1", "2", true)));
}

TEST_F(JobDifferenceTest, FilesOfTheTrainingDataAreNamedAndTestDataLeftOut) {
  const auto found = JobDifferences(
      Job({}), Job({"data.train.csv.path=b.csv", "data.test.csv.path=b.csv"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].key, "data.train.csv.path.0");
  EXPECT_TRUE(found[0].names_data);
}

}  // namespace
}  // namespace tributary
