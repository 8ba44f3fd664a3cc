// SPDX-License-Identifier: Apache-2.0
#include "common/cost/strategies.h"

#include "common/job/job_file.h"
#include "common/job/job_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/layers/simple_model.h"

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
  train: {synthetic: {kind: linear, rows: 1000}}
  batch_size: 16
training:
  epochs: 2
  loss: mse
  gradient_accumulation: 3
  optimizer: {adam: {amsgrad: true}}
cluster: {workers: 4, servers: 2}
)";

v1::JobSpec Job(const std::vector<std::string>& overrides = {}) {
  const absl::StatusOr<v1::JobSpec> job = ParseJob(kJob, "j.yaml", overrides);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *job : v1::JobSpec();
}

TEST(StrategiesTest, AJobsInputsAreItsOwn) {
  const CostInputs inputs = InputsOfJob(Job());
  EXPECT_EQ(inputs.strategy.workers, 4);
  EXPECT_EQ(inputs.global_rows, 64);
  EXPECT_EQ(inputs.accumulation, 3);
  EXPECT_EQ(inputs.optimizer_states, 3);
  EXPECT_EQ(inputs.strategy.exchange, Exchange::kParameterServer);
  EXPECT_EQ(inputs.strategy.servers, 2);
  EXPECT_EQ(inputs.strategy.bucket_bytes, 0u);
  EXPECT_EQ(inputs.strategy.exchange_every, 1);
}

TEST(StrategiesTest, AStrategyWithoutServersHasItsBuckets) {
  Strategy strategy = StrategyOf(Job({"strategy={all_reduce: {}}"}));
  EXPECT_EQ(strategy.exchange, Exchange::kAllReduce);
  EXPECT_EQ(strategy.bucket_bytes, Strategy::kAllReduceBucketBytes);
  EXPECT_EQ(strategy.first_bucket_bytes, Strategy::kFirstBucketBytes);
  strategy = StrategyOf(
      Job({"strategy={all_reduce: {sharded: true, bucket_bytes: 2MiB}}"}));
  EXPECT_EQ(strategy.exchange, Exchange::kShardedAllReduce);
  EXPECT_EQ(strategy.bucket_bytes, 2u << 20);
  strategy = StrategyOf(Job({"strategy={data_parallel: {}}"}));
  EXPECT_EQ(strategy.exchange, Exchange::kThreads);
}

// Two pipelines of two stages: a batch of 16 each.
TEST(StrategiesTest, AMeshIsTheJobs) {
  const CostInputs inputs = InputsOfJob(
      Job({"strategy={all_reduce: {}, pipeline_parallel: {stages: 2, "
           "micro_batches: 4, schedule: gpipe}}"}));
  EXPECT_EQ(inputs.strategy.stages, 2);
  EXPECT_EQ(inputs.strategy.tensor, 1);
  EXPECT_EQ(inputs.strategy.micro_batches, 4);
  EXPECT_EQ(inputs.strategy.schedule, PipelineSchedule::kGpipe);
  EXPECT_EQ(inputs.global_rows, 2 * 16);
}

TEST(StrategiesTest, APeriodOfLocalStepsIsTheExchanges) {
  const CostInputs inputs = InputsOfJob(
      Job({"strategy.parameter_server.sync={local_sgd: {period: 8}}"}));
  EXPECT_EQ(inputs.strategy.exchange_every, 8);
  // 2^32 + 1 steps, which 32 bits would wrap to 1.
  EXPECT_EQ(InputsOfJob(Job({"strategy.parameter_server.sync={local_sgd: "
                             "{period: 4294967297}}"}))
                .strategy.exchange_every,
            2147483647);
}

TEST(StrategiesTest, ASamplesShapeIsReadFromTheJobWhereItSaysIt) {
  EXPECT_EQ(SampleShapeOf(Job()).value(), Shape({20}));
  v1::JobSpec job = Job();
  job.mutable_data()->mutable_train()->mutable_text()->set_length(64);
  EXPECT_EQ(SampleShapeOf(job).value(), Shape({64}));
  job = Job();
  job.mutable_model()->mutable_sequential(0)->mutable_conv2d();
  EXPECT_THAT(SampleShapeOf(job).status().message(), HasSubstr("which shape"));
}

TEST(StrategiesTest, AStrategyIsNamedByItsAxes) {
  Strategy strategy;
  strategy.workers = 4;
  strategy.servers = 2;
  EXPECT_EQ(StrategyText(strategy), "parameter_server, 2 servers");
  strategy.tensor = 2;
  EXPECT_EQ(StrategyText(strategy),
            "tensor_parallel:2+parameter_server, 2 servers");
  strategy.exchange = Exchange::kAllReduce;
  strategy.workers = 2;
  EXPECT_EQ(StrategyText(strategy), "tensor_parallel:2");
  strategy.workers = 4;
  strategy.tensor = 1;
  strategy.stages = 2;
  strategy.micro_batches = 4;
  EXPECT_EQ(StrategyText(strategy), "pipeline_parallel:2:1f1b:4+all_reduce");
  strategy.workers = strategy.stages = 1;
  EXPECT_EQ(StrategyText(strategy), "single");
}

absl::Status Any(const Strategy& /*strategy*/) { return absl::OkStatus(); }

// Only links cost time, and the model has one layer. Every strategy has its
// line, and one worker alone is the fastest, since computing costs nothing.
TEST(StrategiesTest, EveryStrategyOfTheWorkersIsPredicted) {
  const ModelCosts model = SimpleModel({1 << 20});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 4);
  inputs.cluster.bandwidth = 1e6;
  const absl::StatusOr<StrategyPlan> plan = PlanStrategies(inputs, 2, Any);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> names;
  for (const auto& strategy : plan->strategies) names.push_back(strategy.name);
  EXPECT_THAT(names,
              ElementsAre("single", "parameter_server, 2 servers",
                          "parameter_server, 4 servers", "all_reduce",
                          "all_reduce:sharded", "data_parallel",
                          "tensor_parallel:2+all_reduce",
                          "tensor_parallel:2+parameter_server, 2 servers",
                          "tensor_parallel:4"));
  // With more servers than workers the workers' own links are the bottleneck.
  EXPECT_EQ(plan->best_servers, 4);
  EXPECT_EQ(plan->fastest, 0u);
  ASSERT_TRUE(plan->fastest_over_links);
  EXPECT_TRUE(UsesLinks(plan->strategies[*plan->fastest_over_links].strategy));
  ASSERT_FALSE(plan->left_out.empty());
  EXPECT_EQ(plan->left_out[0].name, "pipeline_parallel:2:1f1b:2+all_reduce");
  EXPECT_THAT(plan->left_out[0].why, HasSubstr("1 parts"));
}

TEST(StrategiesTest, WhatIsRefusedIsLeftOutAndWhy) {
  const ModelCosts model = SimpleModel({1 << 20});
  const CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 2);
  const absl::StatusOr<StrategyPlan> plan =
      PlanStrategies(inputs, 1, [](const Strategy& strategy) {
        return strategy.uses_servers() ? absl::OkStatus()
                                       : absl::InvalidArgumentError("no");
      });
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const auto& strategy : plan->strategies) {
    EXPECT_THAT(strategy.name, HasSubstr("parameter_server"));
  }
  EXPECT_EQ(plan->left_out[0].name, "single");
  EXPECT_EQ(plan->left_out[0].why, "no");
  const auto none = PlanStrategies(inputs, 1, [](const Strategy& /*strategy*/) {
    return absl::InvalidArgumentError("no");
  });
  EXPECT_THAT(none.status().message(),
              HasSubstr("no strategy can run the job; single: no"));
}

// Much to compute: the more at once the better, and nothing is sent between
// threads.
TEST(StrategiesTest, TheFastestIsTheOneWithTheShortestStep) {
  const ModelCosts model = SimpleModel({1 << 20, 1 << 20});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 2);
  inputs.global_rows = 64;
  inputs.compute.forward_flops = inputs.compute.backward_flops = 1;
  inputs.cluster.bandwidth = 1e6;
  const absl::StatusOr<StrategyPlan> plan = PlanStrategies(inputs, 1, Any);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->strategies[plan->fastest].name, "data_parallel");
  for (const PredictedStrategy& strategy : plan->strategies) {
    EXPECT_GE(strategy.prediction.step_seconds,
              plan->strategies[plan->fastest].prediction.step_seconds);
  }
}

}  // namespace
}  // namespace tributary
