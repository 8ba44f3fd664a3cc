// SPDX-License-Identifier: Apache-2.0
// One job under every synchronous strategy that sums gradients in rank order
// ends with the same bits: real processes, compared by the weights' sha256.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/strategies.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

// 41 samples per step over 3 ranks: 14, 14 and 13. Uses accumulation, and the
// last step of an epoch is short.
constexpr char kJob[] = R"(name: equality
device: cpu
model:
  sequential:
    - linear: {in: 16, out: 700}
    - batch_norm: {features: 700}
    - tanh
    - dropout: {p: 0.1}
    - linear: {in: 700, out: 1}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 400}}
  global_batch_size: 41
checkpoint: {every_steps: 7}
)";

struct Case {
  const char* label;
  const char* training;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.label; }
};

class StrategyEqualityTest : public testing::TemporaryFolderTest,
                             public ::testing::WithParamInterface<Case> {
 protected:
  std::string WeightsOf(const testing::Strategy& strategy, int workers) {
    const std::string run = absl::StrCat(strategy.label, workers);
    Write(run + ".yaml",
          absl::StrCat(kJob,
                       "training: {steps: 25, loss: mse, "
                       "gradient_accumulation: 2, ",
                       GetParam().training, "}\n", strategy.Yaml(workers)));
    const testing::ProcessResult result =
        testing::RunProcess({testing::Program("tributary"), "train",
                             Path(run + ".yaml"), "--run-dir", Path(run)});
    EXPECT_EQ(result.exit_code, 0) << result.output;
    if (result.exit_code != 0) return run;
    return nlohmann::json::parse(Read(run + "/summary.json"))["weights_sha256"];
  }
};

TEST_P(StrategyEqualityTest, ReplicatedAndShardedEndWithTheServersBits) {
  const std::string served = WeightsOf(testing::ParameterServerStrategy(), 3);
  for (const testing::Strategy& strategy : testing::CollectiveStrategies()) {
    EXPECT_EQ(WeightsOf(strategy, 3), served) << strategy.label;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, StrategyEqualityTest,
    ::testing::Values(
        Case{"Momentum",
             "optimizer: {sgd: {learning_rate: .05, momentum: .9}}"},
        Case{"AdamClipped", "clip_norm: 0.05, optimizer: adam"},
        Case{"Lamb", "optimizer: {lamb: {weight_decay: 0.01}}"},
        Case{"Lion", "optimizer: {lion: {weight_decay: 0.01}}"},
        Case{"Adafactor", "clip_norm: 0.05, optimizer: adafactor"},
        Case{"Bfloat16", "precision: bfloat16, optimizer: adamw"},
        Case{"SkippingSteps", "nonfinite: skip, optimizer: rmsprop"},
        Case{"MomentumInGroups",
             "optimizer: {sgd: {learning_rate: .05, momentum: .9}}, "
             "parameter_groups: [{parameters: \"*.bias\", optimizer: {sgd: "
             "{learning_rate: .2}}}, {parameters: 1.*, frozen: true}]"},
        Case{"AdamwClippedInGroups",
             "clip_norm: 0.05, optimizer: {adamw: {weight_decay: .1}}, "
             "parameter_groups: [{parameters: \"*.bias\", optimizer: {adamw: "
             "{weight_decay: 0}}}, {parameters: 0.weight, frozen: true}]"}),
    [](const auto& info) { return info.param.label; });

// The first rows' gradients overflow, so that the steps with them change
// nothing. A job ends like one without these rows, also after a resume.
class SkippedStepsTest : public testing::TemporaryFolderTest {
 protected:
  static constexpr int kOverflowing = 12;  // rows: three steps of four

  void SetUp() override {
    std::string overflowing, others;
    for (int row = 0; row < kOverflowing; ++row) {
      absl::StrAppend(&overflowing, "1e30,", row, "\n");
    }
    for (int row = 0; row < 20; ++row) {
      absl::StrAppend(&others, row % 7, ",", row % 5, "\n");
    }
    Write("all.csv", absl::StrCat("x,y\n", overflowing, others));
    Write("others.csv", absl::StrCat("x,y\n", others));
  }

  // Returns the sha256 of the weights that the run ends with.
  std::string Train(const std::vector<std::string>& arguments,
                    const std::string& run) {
    std::vector<std::string> command = {testing::Program("tributary"), "train",
                                        "--run-dir", Path(run)};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const testing::ProcessResult result = testing::RunProcess(command);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    if (result.exit_code != 0) return run;
    return nlohmann::json::parse(Read(run + "/summary.json"))["weights_sha256"];
  }
  std::string WeightsOf(const std::string& data, int steps,
                        const std::string& name,
                        const testing::Strategy& strategy) {
    const std::string run = absl::StrCat(strategy.label, "_", name);
    Write(run + ".yaml",
          absl::StrCat(
              "name: skips\ndevice: cpu\nmodel: {sequential: [{linear: {in: 1, "
              "out: 4}}, {linear: {in: 4, out: 1}}]}\n"
              "data: {train: {csv: {path: ",
              Path(data),
              ", columns: {label: y}}}, shuffle: none, global_batch_size: 4}\n"
              "training: {steps: ",
              steps, ", loss: mse, nonfinite: skip, optimizer: adam}\n",
              strategy.Yaml(2)));
    return Train({Path(run + ".yaml")}, run);
  }
};

TEST_F(SkippedStepsTest, DoNotCountForTheOptimizer) {
  for (const testing::Strategy& strategy :
       {testing::ParameterServerStrategy(), testing::CollectiveStrategies()[0],
        testing::CollectiveStrategies()[1],
        testing::ModelParallelStrategies()[1],
        testing::ModelParallelStrategies()[2]}) {
    SCOPED_TRACE(strategy.label);
    const std::string expected = WeightsOf("others.csv", 5, "other", strategy);
    EXPECT_EQ(WeightsOf("all.csv", 8, "all", strategy), expected);
    WeightsOf("all.csv", 4, "begun", strategy);
    EXPECT_EQ(Train({"--resume", Path(strategy.label + "_begun"), "--set",
                     "training.steps=8"},
                    strategy.label + "_resumed"),
              expected);
  }
}

}  // namespace
}  // namespace tributary
