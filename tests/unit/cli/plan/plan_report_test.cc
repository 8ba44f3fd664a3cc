// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/plan_report.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

PlanReport Report() {
  PlanReport report;
  report.job_name = "small";
  report.parameter_elements = 1 << 18;
  report.inputs.strategy.workers = 2;
  report.inputs.global_rows = 64;
  report.inputs.accumulation = 2;
  report.inputs.cluster.bandwidth = 125e6;
  report.inputs.cluster.latency = 2e-4;
  report.inputs.compute.forward_flops = 35e9;
  PredictedStrategy server;
  server.name = "parameter_server, 2 servers";
  server.strategy.servers = 2;
  server.strategy.workers = 2;
  server.prediction.step_seconds = 0.5;
  server.prediction.compute_seconds = 0.125;
  server.prediction.exposed_seconds = 0.375;
  server.prediction.bytes_sent_per_rank = 1 << 20;
  server.prediction.worker_memory = 3 << 20;
  server.prediction.server_memory = 5 << 20;
  PredictedStrategy reduce;
  reduce.name = "all_reduce";
  reduce.strategy.exchange = Exchange::kAllReduce;
  reduce.strategy.workers = 2;
  reduce.prediction.step_seconds = 0.25;
  report.plan.strategies = {server, reduce};
  report.own = server;
  report.plan.fastest = 1;
  report.plan.fastest_over_links = 1;
  report.plan.best_servers = 2;
  report.plan.left_out = {{"tensor_parallel:2", "3 heads"}};
  return report;
}

TEST(PlanReportTest, TheTextHasTheFastestFirstAndNamesIt) {
  const std::string text = PlanText(Report());
  EXPECT_THAT(text, HasSubstr("small: 262144 parameters (1.0 MiB), 128 samples "
                              "a step, 2 workers\n"));
  EXPECT_THAT(text, HasSubstr("compute 35 GFLOP/s forward, unlimited backward "
                              "(given); links 1000 Mbit/s of payload, 200 "
                              "us\n"));
  EXPECT_LT(text.find("\nall_reduce "), text.find("\nparameter_server, "));
  EXPECT_THAT(
      text, HasSubstr("fastest over these links: all_reduce\nparameter_server "
                      "runs best with 2 servers: one more would save less "
                      "than 5% of the step\nleft out: tensor_parallel:2: 3 "
                      "heads\n"));
}

TEST(PlanReportTest, OneProcessThatIsFasterIsNoAnswerForSeveralMachines) {
  PlanReport report = Report();
  PredictedStrategy single;
  single.name = "single";
  single.strategy.workers = 1;
  single.prediction.step_seconds = 0.125;
  report.plan.strategies.push_back(single);
  report.plan.fastest = 2;
  EXPECT_THAT(
      PlanText(report),
      HasSubstr("fastest over these links: all_reduce\none process is 2 "
                "times as fast: single needs no link\n"));
  EXPECT_EQ(nlohmann::json::parse(PlanJson(report))["fastest_over_links"],
            "all_reduce");
}

TEST(PlanReportTest, TheJsonHasEveryPartInSecondsAndBytes) {
  const nlohmann::json json = nlohmann::json::parse(PlanJson(Report()));
  EXPECT_EQ(json["fastest"], "all_reduce");
  EXPECT_EQ(json["best_servers"], 2);
  EXPECT_EQ(json["own"]["step_seconds"], 0.5);
  EXPECT_EQ(json["samples_per_step"], 128);
  EXPECT_TRUE(json["backward_flops_per_second"].is_null());
  const auto& server = json["strategies"][1];
  EXPECT_EQ(server["name"], "parameter_server, 2 servers");
  EXPECT_EQ(server["servers"], 2);
  EXPECT_EQ(server["step_seconds"], 0.5);
  EXPECT_EQ(server["exposed_seconds"], 0.375);
  EXPECT_EQ(server["samples_per_second"], 256);
  EXPECT_EQ(server["bytes_sent_per_rank"], 1 << 20);
  EXPECT_EQ(server["server_memory_bytes"], 5 << 20);
  EXPECT_EQ(json["strategies"][0]["servers"], 0);
  EXPECT_EQ(json["left_out"][0]["name"], "tensor_parallel:2");
  EXPECT_EQ(json["left_out"][0]["why"], "3 heads");
}

// 2^66 bytes and a name that is not UTF-8: neither ends the program.
TEST(PlanReportTest, WhateverComesIsWritten) {
  PlanReport report = Report();
  report.job_name = "a\xff";
  report.own.prediction.worker_memory = 0x1p66;
  report.plan.strategies[1].prediction.worker_memory = 0x1p66;
  EXPECT_THAT(PlanText(report), HasSubstr(" TiB"));
  EXPECT_EQ(nlohmann::json::parse(PlanJson(report))["job"], "a\uFFFD");
}

TEST(PlanReportTest, APredictionIsOneStrategyOfIt) {
  const PlanReport report = Report();
  const std::string line = PredictionJson(report.own, report.inputs);
  EXPECT_EQ(nlohmann::json::parse(line),
            nlohmann::json::parse(PlanJson(report))["own"]);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

}  // namespace
}  // namespace tributary
