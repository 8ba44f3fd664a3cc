// SPDX-License-Identifier: Apache-2.0
// `tributary compare` with real runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::kSoon;
using ::testing::Not;
using testing::RunningProcess;
using ::testing::StartsWith;

// 1,000 rows in batches of 24: an epoch's last batch has 16.
constexpr char kCompareJob[] = R"(name: small
model: {mlp: {in: 16, hidden: [64], out: 1, activation: tanh}}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 1000}}
  test: {synthetic: {kind: mlp_teacher, rows: 200, first_row: 1000000}}
  batch_size: 12
training: {steps: 60, loss: mse, optimizer: {adam: {learning_rate: 0.01}}}
cluster: {servers: 2, workers: 2}
)";

class CompareTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override { Write("job.yaml", kCompareJob); }

  std::unique_ptr<RunningProcess> Compare(std::vector<std::string> words) {
    std::vector<std::string> command = {testing::Program("tributary"),
                                        "compare"};
    command.insert(command.end(), words.begin(), words.end());
    return RunningProcess::Start({.command = command, .folder = folder()});
  }
};

TEST_F(CompareTest, TwoWorkersGetWhereOneGets) {
  auto compare =
      Compare({"job.yaml", "--strategies", "parameter_server", "--run-dir",
               "runs", "--report", "page.html", "--json", "figures.json"});
  ASSERT_EQ(compare->Wait(kSoon), 0) << compare->output();
  EXPECT_THAT(compare->output(),
              HasSubstr("Time of a step: the median after 10 steps"));
  EXPECT_THAT(compare->output(), HasSubstr("\nparameter_server        2"));
  EXPECT_THAT(compare->output(), HasSubstr("\nreport: page.html\n"));

  const json figures = json::parse(Read("figures.json"));
  EXPECT_EQ(figures["global_batch"], 24);
  EXPECT_EQ(figures["parameters"], 16 * 64 + 64 + 64 + 1);
  ASSERT_EQ(figures["runs"].size(), 2u);
  for (const json& run : figures["runs"]) {
    EXPECT_EQ(run["status"], "done");
    EXPECT_EQ(run["steps"], 60);
    EXPECT_EQ(run["losses"].size(), 60u);
    double sum = 0;
    for (const auto& [name, seconds] : run["parts_seconds"].items()) {
      sum += seconds.get<double>();
    }
    EXPECT_GT(sum, 0);
    EXPECT_NEAR(sum, run["step_seconds"].get<double>(), 1e-9);
    EXPECT_GT(run["parts_seconds"]["compute"], 0);
    EXPECT_GT(run["peak_memory_bytes"]["worker"], 1 << 20);
    EXPECT_TRUE(run["metric"].is_number());
    EXPECT_EQ(run["timeline"]["ranks"].size(), run["workers"]);
    EXPECT_GT(run["predicted_step_seconds"], 0);
  }
  EXPECT_THAT(compare->output(), HasSubstr("  predicted  "));
  // Each worker sends all gradients and receives all weights.
  const json& two = figures["runs"][1];
  EXPECT_EQ(two["strategy"], "parameter_server");
  EXPECT_EQ(two["bytes_per_rank_and_step"]["sent"], 1153 * 4);
  EXPECT_EQ(two["bytes_per_rank_and_step"]["received"], 1153 * 4);
  EXPECT_GT(two["parts_seconds"]["optimizer"], 0);
  EXPECT_GT(two["peak_memory_bytes"]["server"], 1 << 20);
  // The training is the same; only sums are rounded in another order.
  EXPECT_GT(two["weight_distance"], 0);
  EXPECT_LT(two["weight_distance"], 1e-5);
  EXPECT_NEAR(two["loss"].get<double>(),
              figures["runs"][0]["loss"].get<double>(), 1e-5);

  EXPECT_THAT(Read("page.html"), StartsWith("<!DOCTYPE html>\n<html"));
  EXPECT_THAT(Read("page.html"), HasSubstr("One step, rank by rank"));
  EXPECT_THAT(Read("page.html"), HasSubstr("</html>\n"));

  // The existing runs give the same report again.
  auto again = Compare({"--from", "runs/parameter_server", "--from",
                        "runs/single", "--json", "again.json"});
  ASSERT_EQ(again->Wait(kSoon), 0) << again->output();
  EXPECT_EQ(json::parse(Read("again.json")), figures);

  // A report never replaces a file of the runs.
  const std::string summary = Read("runs/single/summary.json");
  for (const char* option : {"--json", "--report"}) {
    auto refused =
        Compare({"--from", "runs/single", option, "runs/single/summary.json"});
    EXPECT_EQ(refused->Wait(kSoon), 2) << refused->output();
    EXPECT_THAT(refused->output(), HasSubstr("is a file of the run directory"));
  }
  EXPECT_EQ(Read("runs/single/summary.json"), summary);

  // Compares with a run of another rate, which has no distance from the first.
  auto other =
      Compare({"job.yaml", "--strategies", "parameter_server", "--run-dir",
               "other", "--set", "training.optimizer.adam.learning_rate=0.1"});
  ASSERT_EQ(other->Wait(kSoon), 0) << other->output();
  auto both = Compare({"--from", "runs/single", "--from",
                       "other/parameter_server", "--json", "both.json"});
  ASSERT_EQ(both->Wait(kSoon), 0) << both->output();
  EXPECT_TRUE(
      json::parse(Read("both.json"))["runs"][1]["weight_distance"].is_null());
}

// 4,612 bytes of gradients in one block go from two workers to one server and
// back at 956,407 payload bytes/s. This takes 19.3 ms after backward.
TEST_F(CompareTest, PredictsWithWhatIsGiven) {
  auto compare =
      Compare({"job.yaml", "--strategies", "parameter_server", "--servers", "1",
               "--set", "training.steps=2", "--bandwidth", "1MB", "--compute",
               "0.0001", "--run-dir", "runs"});
  ASSERT_EQ(compare->Wait(kSoon), 0) << compare->output();
  const json prediction =
      json::parse(Read("runs/parameter_server/prediction.json"));
  EXPECT_EQ(prediction["name"], "parameter_server, 1 server");
  EXPECT_NEAR(prediction["exposed_seconds"].get<double>(), 0.0193, 1e-3);
  const json figures = json::parse(Read("runs/compare.json"));
  EXPECT_EQ(figures["runs"][1]["predicted_step_seconds"],
            prediction["step_seconds"]);
}

TEST_F(CompareTest, WithoutPredictionNothingIsMeasured) {
  auto compare =
      Compare({"job.yaml", "--strategies", "all_reduce", "--set",
               "training.steps=2", "--no-prediction", "--run-dir", "runs"});
  ASSERT_EQ(compare->Wait(kSoon), 0) << compare->output();
  EXPECT_THAT(compare->output(), Not(HasSubstr("predicted")));
  EXPECT_THAT(Read("runs/compare.json"),
              HasSubstr("\"predicted_step_seconds\": null"));
}

TEST_F(CompareTest, AMeasurementThatFailsIsANoteAndTheRunsGoOn) {
  auto compare = Compare({"job.yaml", "--strategies", "all_reduce", "--set",
                          "training.steps=2", "--probe", "127.0.0.1:1",
                          "--run-dir", "runs"});
  ASSERT_EQ(compare->Wait(kSoon), 0) << compare->output();
  EXPECT_THAT(compare->output(), HasSubstr("no predictions: "));
  EXPECT_THAT(compare->output(), HasSubstr("cannot reach 127.0.0.1:1"));
}

TEST_F(CompareTest, DryRunSaysWhatWouldRun) {
  auto compare =
      Compare({"job.yaml", "--workers", "1,3", "--servers", "1,2",
               "--strategies", "parameter_server:async", "--dry-run"});
  ASSERT_EQ(compare->Wait(kSoon), 0);
  EXPECT_THAT(compare->output(),
              HasSubstr("parameter_server:async: 1 workers, 1 servers\n"
                        "parameter_server:async: 1 workers, 2 servers\n"
                        "parameter_server:async: 3 workers, 1 servers\n"
                        "parameter_server:async: 3 workers, 2 servers\n"));
  EXPECT_EQ(NumFiles(), 1) << "nothing is left behind";
}

TEST_F(CompareTest, AReportDoesNotReplaceTheJob) {
  auto compare = Compare({"job.yaml", "--json", "job.yaml", "--dry-run"});
  EXPECT_EQ(compare->Wait(kSoon), 2) << compare->output();
  EXPECT_THAT(compare->output(), HasSubstr("is one of the files to read"));
  EXPECT_EQ(Read("job.yaml"), kCompareJob);
}

TEST_F(CompareTest, ARunThatFailsIsARowAndTheExitCode) {
  // This rate makes the weights overflow, and the job fails.
  auto compare =
      Compare({"job.yaml", "--strategies", "parameter_server", "--run-dir",
               "runs", "--set", "training.optimizer.sgd.learning_rate=1e30"});
  EXPECT_EQ(compare->Wait(kSoon), 1) << compare->output();
  EXPECT_THAT(compare->output(), HasSubstr("runs/single: failed: "));
  EXPECT_THAT(compare->output(), HasSubstr("runs/parameter_server: failed: "));
  const json figures = json::parse(Read("runs/compare.json"));
  EXPECT_EQ(figures["runs"][0]["status"], "failed");
  EXPECT_THAT(Read("runs/compare.html"), Not(HasSubstr("Fastest")));
}

}  // namespace
}  // namespace tributary
