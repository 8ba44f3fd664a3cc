// SPDX-License-Identifier: Apache-2.0
// `tributary replay` on runs of every strategy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/cli/replayed_runs.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kServers[] =
    "strategy: {parameter_server: {sync: bsp}}\n"
    "cluster: {servers: 2, workers: 2}\n";

class ReplayTest : public testing::ReplayedRunsTest {
 protected:
  // Replays the step and returns what --json prints.
  json Replay(const std::string& run, int step) {
    const int code =
        Run({"replay", Path(run), "--step", std::to_string(step), "--json"});
    EXPECT_EQ(code, 0) << output_;
    return json::parse(output_, nullptr, /*allow_exceptions=*/false);
  }
  void ExpectEqual(const std::string& run, int step) {
    const json replayed = Replay(run, step);
    ASSERT_TRUE(replayed.is_object()) << output_;
    EXPECT_EQ(replayed["equal"], true) << output_;
    EXPECT_EQ(replayed["loss"], Metrics(run)[step - 1]["loss"]);
  }
  // Returns the step of the newest checkpoint before `step`; 0: none. Every
  // tenth step has a checkpoint, unless the disk was too slow.
  int NewestCheckpointBefore(const std::string& run, int step) {
    int newest = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(Path(run + "/checkpoints"))) {
      const std::string name = entry.path().filename().string();
      int found = 0;
      if (std::sscanf(name.c_str(), "step-%d", &found) == 1 && found < step) {
        newest = std::max(newest, found);
      }
    }
    return newest;
  }
};

TEST_F(ReplayTest, TenStepsHaveTheRecordedLossAndTheRunIsNotTouched) {
  WriteJob("job.yaml", kServers);
  Train("run");
  const auto before = Files("run");
  std::vector<int> steps(kSteps);
  std::iota(steps.begin(), steps.end(), 1);
  std::shuffle(steps.begin(), steps.end(), std::mt19937(7));
  steps.resize(10);
  for (const int step : steps) {
    SCOPED_TRACE(step);
    ExpectEqual("run", step);
    const json replayed = json::parse(output_);
    EXPECT_EQ(replayed["from_step"], NewestCheckpointBefore("run", step));
  }
  EXPECT_EQ(Files("run"), before);
}

TEST_F(ReplayTest, ShowsTheGradientOfEachRankAndTensor) {
  WriteJob("job.yaml", kServers);
  Train("run");
  const json replayed = Replay("run", 12);
  ASSERT_EQ(replayed["ranks"].size(), 2u);
  std::vector<std::string> names;
  for (const json& rank : replayed["ranks"]) {
    EXPECT_EQ(rank["samples"], 10);
    for (const json& tensor : rank["tensors"]) {
      if (rank["rank"] == 0) names.push_back(tensor["name"]);
      const std::string name = tensor["name"];
      if (name.find("running") != std::string::npos) continue;
      EXPECT_GT(tensor["gradient_norm"], 0) << name;
    }
  }
  EXPECT_THAT(names, ElementsAre("0.weight", "0.bias", "1.weight", "1.bias",
                                 "1.running_mean", "1.running_var", "4.weight",
                                 "4.bias"));
  EXPECT_NE(replayed["ranks"][0]["tensors"][0]["gradient_norm"],
            replayed["ranks"][1]["tensors"][0]["gradient_norm"]);
  const double mean = (double{replayed["ranks"][0]["loss"]} +
                       double{replayed["ranks"][1]["loss"]}) /
                      2;
  EXPECT_NEAR(mean, replayed["loss"], 1e-12);

  ASSERT_EQ(Run({"replay", Path("run"), "--step", "12"}), 0);
  EXPECT_THAT(output_, HasSubstr("computed again from the checkpoint of step "
                                 "10\nloss "));
  EXPECT_THAT(output_, HasSubstr(": equal\nrank 0: 10 samples, loss "));
}

// loss = (w x + b - y)^2 of the rank's one sample x = (3, 4). So the gradient
// of b is 2 (w x + b - y) = 2 sqrt(loss) in magnitude, and that of w is |x| = 5
// times as large.
TEST_F(ReplayTest, TheNormsAreThoseOfTheRanksOwnSamples) {
  Write("rows.csv", "x,y,target\n3,4,1\n-3,4,2\n");
  Write("job.yaml", R"(name: by hand
model: {sequential: [linear: {in: 2, out: 1}]}
data: {train: {csv: {path: rows.csv, columns: {label: target}}}, batch_size: 1}
training: {steps: 5, loss: mse, optimizer: {sgd: {learning_rate: 0.01}}}
cluster: {workers: 2}
)");
  Train("run");
  const json replayed = Replay("run", 4);
  for (const json& rank : replayed["ranks"]) {
    const double bias = 2 * std::sqrt(double{rank["loss"]});
    EXPECT_NEAR(rank["tensors"][0]["gradient_norm"], 5 * bias, 1e-5 * bias);
    EXPECT_NEAR(rank["tensors"][1]["gradient_norm"], bias, 1e-5 * bias);
  }
}

TEST_F(ReplayTest, EveryDeterministicStrategyGivesTheRecord) {
  const std::vector<std::pair<std::string, std::string>> strategies = {
      {"residuals",
       "strategy: {parameter_server: {sync: bsp, wire: one_bit}}\n"
       "cluster: {servers: 2, workers: 2}\n"},
      {"sharded",
       "strategy: {all_reduce: {sharded: true}}\ncluster: {workers: 2}\n"},
      {"threads", "strategy: data_parallel\ncluster: {workers: 2}\n"}};
  for (const auto& [name, strategy] : strategies) {
    SCOPED_TRACE(name);
    WriteJob("job.yaml", strategy);
    Train(name);
    ExpectEqual(name, 7);
    ExpectEqual(name, 34);
  }
}

TEST_F(ReplayTest, GroupsOfRanksAreStartedAsTheJobHasThem) {
  // No batch_norm and no dropout, which a stage or slice must not have.
  Write("job.yaml", R"(name: groups
model: {sequential: [linear: {in: 8, out: 16}, relu, linear: {in: 16, out: 2}]}
data:
  train: {npy: {features: features.npy, labels: labels.npy}}
  batch_size: 10
training: {steps: 20, loss: cross_entropy, optimizer: {adam: {}}}
checkpoint: {every_steps: 10}
)");
  const std::vector<std::pair<std::string, std::vector<std::string>>> jobs = {
      {"tensor",
       {"--set", "strategy={all_reduce: {}, tensor_parallel: 2}", "--set",
        "cluster={workers: 2}"}},
      {"stages",
       {"--set", "strategy={all_reduce: {}, pipeline_parallel: {stages: 2}}",
        "--set", "cluster={workers: 2}"}}};
  for (const auto& [name, overrides] : jobs) {
    SCOPED_TRACE(name);
    Train(name, overrides);
    ExpectEqual(name, 4);
    ExpectEqual(name, 13);
  }
}

TEST_F(ReplayTest, AStepThatWasNotRecordedAsComputedIsToldApart) {
  WriteJob("job.yaml", kServers);
  Train("run");
  std::string metrics = Read("run/metrics.jsonl");
  const std::string loss = Metrics("run")[14]["loss"].dump();
  const size_t at = metrics.find(loss);
  ASSERT_NE(at, std::string::npos);
  Write("run/metrics.jsonl", metrics.replace(at, loss.size(), "0.5"));
  EXPECT_EQ(Run({"replay", Path("run"), "--step", "15"}), 1);
  EXPECT_THAT(output_,
              HasSubstr("\nloss " + loss + ", recorded 0.5: different\n"));
}

TEST_F(ReplayTest, RefusesStepsThatCannotBeComputedAgain) {
  const std::vector<std::pair<std::string, std::string>> strategies = {
      {"ssp: {staleness: 1}", "ssp they depend on timing"},
      {"async", "async they depend on timing"},
      {"local_sgd: {period: 5}", "local_sgd each worker keeps a state"}};
  for (const auto& [sync, why] : strategies) {
    SCOPED_TRACE(sync);
    Write("job.yaml", R"(name: loose
model: {sequential: [linear: {in: 8, out: 2}]}
data: {train: {npy: {features: features.npy, labels: labels.npy}}, batch_size: 10}
training: {steps: 10, loss: cross_entropy, optimizer: {sgd: {learning_rate: 0.1}}}
strategy: {parameter_server: {sync: {)" +
                          sync + (sync == "async" ? ": {}" : "") +
                          "}}}\ncluster: {workers: 2}\n");
    std::filesystem::remove_all(Path("run"));
    Train("run");
    EXPECT_EQ(Run({"replay", Path("run"), "--step", "3"}), 2);
    EXPECT_THAT(output_, HasSubstr(why));
    EXPECT_EQ(std::count(output_.begin(), output_.end(), '\n'), 1) << output_;
  }
  EXPECT_EQ(Run({"replay", Path("run"), "--step", "11"}), 2);
  EXPECT_EQ(Run({"replay", Path("none"), "--step", "1"}), 2);
  EXPECT_THAT(output_, HasSubstr("is no run directory"));
}

TEST_F(ReplayTest, NeedsTheTrainingDataAlone) {
  WriteData("test.npy");
  WriteJob("job.yaml", kServers);
  Train("run",
        {"--set", "data.test={npy: {features: test.npy, labels: labels.npy}}"});
  std::filesystem::remove(Path("test.npy"));
  ExpectEqual("run", 12);
  std::filesystem::remove(Path("features.npy"));
  EXPECT_EQ(Run({"replay", Path("run"), "--step", "12"}), 2);
  EXPECT_THAT(output_,
              HasSubstr("run/job.yaml: data.train.npy.features wants a file, "
                        "but " +
                        Path("features.npy") + " does not exist\n"));
}

// The steps before the checkpoint belong to another job.
TEST_F(ReplayTest, RefusesAStepOfAResumedRunWhoseStartIsGone) {
  WriteJob("job.yaml", kServers);
  Train("first", {"--set", "training.steps=20"});
  ASSERT_EQ(Run({"train", "--resume", Path("first"), "--run-dir", Path("run"),
                 "--set", "training.steps=40", "--set",
                 "training.optimizer.adam.learning_rate=0.02"}),
            0)
      << output_;
  EXPECT_EQ(Replay("run", 26)["equal"], true) << output_;
  std::filesystem::remove_all(Path("first"));
  EXPECT_EQ(Replay("run", 26)["equal"], true)
      << output_;  // the run has taken over the checkpoint
  std::filesystem::remove_all(Path("run/checkpoints/step-000000000020"));
  EXPECT_EQ(Run({"replay", Path("run"), "--step", "26"}), 2);
  EXPECT_THAT(output_,
              HasSubstr(Path("run") +
                        " was resumed after step 20, and no checkpoint before "
                        "step 26 is left; its steps from 31 on can be computed "
                        "again\n"));
  EXPECT_EQ(Replay("run", 31)["equal"], true) << output_;
}

TEST_F(ReplayTest, RefusesAStepThatTheRunHasNotRecorded) {
  WriteJob("job.yaml", kServers);
  Train("run");
  EXPECT_EQ(Run({"replay", Path("run"), "--step", "41"}), 2);
  EXPECT_THAT(output_, HasSubstr("has recorded steps 1 to 40, not step 41"));
}

// If a worker is lost early, its reports of all steps so far are lost, too.
TEST_F(ReplayTest, SaysWhyAFirstStepOrALastOneHasNoLossToCompareWith) {
  WriteJob("job.yaml", kServers);
  Train("run");
  std::vector<json> lines = Metrics("run");
  lines.front()["lost_reports"] = 1;
  lines.back()["lost_reports"] = 1;
  std::string text;
  for (const json& line : lines) text += line.dump() + "\n";
  Write("run/metrics.jsonl", text);
  for (const int step : {1, kSteps}) {
    EXPECT_EQ(Run({"replay", Path("run"), "--step", std::to_string(step)}), 2);
    EXPECT_THAT(output_, HasSubstr("has no whole loss of step " +
                                   std::to_string(step) + " to compare with"));
  }
}

}  // namespace
}  // namespace tributary
