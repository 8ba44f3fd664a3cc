// SPDX-License-Identifier: Apache-2.0
#include "common/cost/strategy_job.h"

#include <string>
#include <vector>

#include "common/cost/strategies.h"
#include "common/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Blocks of three heads, which two ranks do not share.
constexpr char kGpt[] = R"(
name: heads
model: {gpt: {layers: 2, dim: 12, heads: 3, length: 8, vocabulary: 32}}
data:
  train: {synthetic: {kind: markov_text, rows: 1000, length: 8}}
  batch_size: 4
training: {steps: 5, loss: cross_entropy, optimizer: {adam: {}}}
cluster: {workers: 6}
)";

v1::JobSpec HeadsJob(const std::vector<std::string>& overrides = {}) {
  const absl::StatusOr<v1::JobSpec> job = ParseJob(kGpt, "j.yaml", overrides);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *job : v1::JobSpec();
}

Strategy Tensor(int ranks, int workers) {
  Strategy strategy;
  strategy.exchange = Exchange::kAllReduce;
  strategy.workers = workers;
  strategy.tensor = ranks;
  return strategy;
}

std::string Refusal(const v1::JobSpec& job, const Strategy& strategy) {
  return std::string(JobWithStrategy(job, strategy).status().message());
}

TEST(StrategyJobTest, WhatTrainRefusesIsRefusedWithItsReason) {
  const v1::JobSpec job = HeadsJob();
  EXPECT_TRUE(JobWithStrategy(job, Tensor(3, 6)).ok());
  EXPECT_THAT(
      Refusal(job, Tensor(2, 6)),
      ::testing::StartsWith("model.sequential.2.residual.body.1.attention"
                            ".heads must be a multiple of "));
  EXPECT_THAT(Refusal(job, Tensor(512, 512)), HasSubstr("at most 256"));
  Strategy stages;
  stages.workers = 6;
  stages.stages = 3;
  stages.micro_batches = 16;  // two pipelines share 24 samples
  EXPECT_THAT(Refusal(job, stages), HasSubstr("a pipeline's batch, 12"));
  EXPECT_THAT(
      Refusal(HeadsJob({"cluster.on_worker_loss=shrink"}), Tensor(1, 6)),
      HasSubstr("shrink wants strategy parameter_server"));
}

TEST(StrategyJobTest, TheBatchOfAllWorkersStays) {
  const v1::JobSpec job = HeadsJob();
  EXPECT_EQ(JobWithStrategy(job, Tensor(3, 6))->data().batch_size(), 12);
  EXPECT_EQ(JobWithStrategy(job, Tensor(1, 1))->data().batch_size(), 24);
  EXPECT_EQ(JobWithStrategy(job, Tensor(1, 5))->data().global_batch_size(), 24);
}

// Groups of ranks need bsp; servers without groups keep the job's policy.
TEST(StrategyJobTest, SynchronizationIsTheJobsWhereItMayBe) {
  const v1::JobSpec job = HeadsJob({"strategy.parameter_server.sync=async"});
  Strategy servers;
  servers.workers = 6;
  servers.servers = 3;
  const auto plain = JobWithStrategy(job, servers);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->strategy().parameter_server().sync().has_async());
  EXPECT_EQ(plain->cluster().servers(), 3);
  servers.tensor = 3;
  EXPECT_TRUE(JobWithStrategy(job, servers).ok());
}

// Every strategy that a plan lists is a job file that can be read.
TEST(StrategyJobTest, EverythingThatIsPlannedIsAJob) {
  const v1::JobSpec job = HeadsJob();
  const absl::StatusOr<ModelCosts> costs = CostsOfModel(job.model(), {8});
  ASSERT_TRUE(costs.ok()) << costs.status();
  CostInputs inputs = InputsOfJob(job);
  inputs.model = &*costs;
  const auto plan = PlanStrategies(inputs, 1, [&job](const Strategy& strategy) {
    return JobWithStrategy(job, strategy).status();
  });
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PredictedStrategy& predicted : plan->strategies) {
    EXPECT_THAT(predicted.name, Not(HasSubstr("tensor_parallel:2")));
    const auto made = JobWithStrategy(job, predicted.strategy);
    ASSERT_TRUE(made.ok()) << predicted.name << made.status();
    const auto read = ParseJob(JobToYaml(*made), predicted.name);
    EXPECT_TRUE(read.ok()) << read.status();
  }
}

}  // namespace
}  // namespace tributary
