// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/compare_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job_file.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

constexpr char kJob[] = R"(name: small
model: {sequential: [{linear: {in: 20, out: 1}}]}
data: {train: {synthetic: {kind: linear, rows: 1000}}, batch_size: 10}
training: {steps: 5, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
strategy: {parameter_server: {sync: {ssp: {staleness: 2}}, bucket_bytes: 8KiB}}
cluster: {servers: 2, workers: 4, on_worker_loss: shrink}
checkpoint: {every_steps: 2}
)";

CompareJobsOptions Options(const std::vector<std::string>& strategies = {}) {
  CompareJobsOptions options;
  options.job = ParseJob(kJob, "job.yaml").value();
  for (const std::string& name : strategies) {
    options.strategies.push_back(ParseStrategy(name).value());
  }
  return options;
}

std::vector<std::string> Folders(const CompareJobs& jobs) {
  std::vector<std::string> folders;
  for (const CompareJob& job : jobs.jobs) folders.push_back(job.folder);
  return folders;
}

TEST(CompareJobsTest, EveryRunSharesTheBatchesOfTheJob) {
  const CompareJobs made =
      MakeCompareJobs(Options({"parameter_server", "parameter_server:async"}))
          .value();
  EXPECT_THAT(Folders(made), ElementsAre("single", "parameter_server",
                                         "parameter_server-async"));
  for (const CompareJob& job : made.jobs) {
    EXPECT_EQ(job.job.data().global_batch_size(), 40) << job.name;  // 4 x 10
    EXPECT_EQ(job.job.cluster().max_restarts(), 0);
    EXPECT_EQ(job.job.checkpoint().every_steps(), 0);
    EXPECT_EQ(job.job.cluster().workers(), job.name == "single" ? 1 : 4);
  }
}

TEST(CompareJobsTest, TheJobsOwnStrategyComesFirstAndKeepsItsSettings) {
  const CompareJobs made = MakeCompareJobs(Options()).value();
  ASSERT_GE(made.jobs.size(), 3u);
  EXPECT_EQ(made.jobs[1].name, "parameter_server:ssp:2");
  EXPECT_EQ(made.jobs[1].job.strategy().parameter_server().bucket_bytes(),
            8192u);
  EXPECT_EQ(made.jobs[2].name, "parameter_server");
  EXPECT_TRUE(made.jobs[2].job.strategy().parameter_server().sync().has_bsp());
  EXPECT_EQ(made.jobs[2].job.strategy().parameter_server().bucket_bytes(),
            8192u);
}

TEST(CompareJobsTest, NumbersOfWorkersAndServersMultiply) {
  CompareJobsOptions options = Options({"parameter_server"});
  options.workers = {2, 4};
  options.servers = {1, 3};
  const CompareJobs made = MakeCompareJobs(options).value();
  EXPECT_THAT(
      Folders(made),
      ElementsAre("single", "parameter_server-w2-s1", "parameter_server-w2-s3",
                  "parameter_server-w4-s1", "parameter_server-w4-s3"));
  EXPECT_EQ(made.jobs[4].job.cluster().servers(), 3);
  EXPECT_EQ(made.jobs[4].job.cluster().workers(), 4);
}

TEST(CompareJobsTest, WhatWasAskedForMustRun) {
  // LAMB's ratios belong to whole tensors, whose gradients async never gathers.
  CompareJobsOptions options =
      Options({"parameter_server", "parameter_server:async"});
  options.job.mutable_training()->mutable_optimizer()->mutable_lamb();
  EXPECT_THAT(MakeCompareJobs(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "parameter_server:async with 4 workers: "));
}

TEST(CompareJobsTest, AGlobalBatchStaysAsItIs) {
  CompareJobsOptions options = Options({"parameter_server"});
  options.job.mutable_data()->set_global_batch_size(100);
  EXPECT_EQ(
      MakeCompareJobs(options).value().jobs[1].job.data().global_batch_size(),
      100);
}

}  // namespace
}  // namespace tributary
