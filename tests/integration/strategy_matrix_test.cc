// SPDX-License-Identifier: Apache-2.0
// Every strategy with every kind of model, compared with a single process: real
// processes, measured by the distance of the weights after 50 steps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "nlohmann/json.hpp"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/strategies.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

constexpr int kSteps = 50;

struct Kind {
  const char* label;
  const char* yaml;

  friend void PrintTo(const Kind& k, std::ostream* out) { *out << k.label; }
};

constexpr char kMlp[] = R"(
model:
  mlp: {in: 16, hidden: [96, 64], out: 1, activation: tanh, dropout: 0.1}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 500}}
  test: {synthetic: {kind: mlp_teacher, rows: 100, first_row: 1000000}}
  global_batch_size: 16
training:
  steps: 50
  loss: mse
  clip_norm: 1
  optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9}}
)";
constexpr char kCnn[] = R"(
model:
  cnn: {image: 28, channels: [4, 8], hidden: 48, classes: 10}
data:
  train:
    idx:
      images: EXAMPLES/data/fashion-train6000-images-idx3-ubyte.gz
      labels: EXAMPLES/data/fashion-train6000-labels-idx1-ubyte.gz
      rows: 800
  test:
    idx:
      images: EXAMPLES/data/fashion-t10k1000-images-idx3-ubyte.gz
      labels: EXAMPLES/data/fashion-t10k1000-labels-idx1-ubyte.gz
      rows: 100
  global_batch_size: 16
training:
  steps: 50
  loss: cross_entropy
  optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9}}
)";
constexpr char kGpt[] = R"(
model:
  gpt: {layers: 2, dim: 16, heads: 2, length: 16, vocabulary: 16}
data:
  train: {synthetic: {kind: markov_text, rows: 400, length: 16}}
  test: {synthetic: {kind: markov_text, rows: 40, length: 16, first_row: 1000}}
  global_batch_size: 16
training:
  steps: 50
  loss: cross_entropy
  optimizer: {sgd: {learning_rate: 0.1, momentum: 0.9}}
)";

struct Outcome {
  double loss = 0;
  double test_loss = 0;
  ParameterSpecs parameters;
  std::vector<std::vector<float>> weights;
};

testing::Strategy CutBothWays() {
  return {"tensor2_pipeline2",
          "{tensor_parallel: 2, pipeline_parallel: {stages: 2, micro_batches: "
          "2}}",
          1, 4};
}

class StrategyMatrixTest : public testing::TemporaryFolderTest,
                           public ::testing::WithParamInterface<Kind> {
 protected:
  // Writes a checkpoint every 20 steps. `from`: the name of another run; this
  // run continues from its first checkpoint.
  Outcome Run(const testing::Strategy& strategy, int workers,
              const std::string& from = "") {
    std::string job = GetParam().yaml;
    for (size_t at; (at = job.find("EXAMPLES")) != std::string::npos;) {
      job.replace(at, 8, testing::SourceFile("examples"));
    }
    const std::string run = absl::StrCat(strategy.label, "-", workers,
                                         from.empty() ? "" : "-after-", from);
    Write(run + ".yaml", absl::StrCat("name: matrix\ndevice: cpu", job,
                                      "checkpoint: {every_steps: 20}\n",
                                      strategy.Yaml(workers)));
    std::vector<std::string> words = {testing::Program("tributary"), "train",
                                      Path(run + ".yaml"), "--run-dir",
                                      Path(run)};
    if (!from.empty()) {
      words.push_back("--resume");
      words.push_back(Path(from + "/checkpoints/step-000000000020"));
    }
    const testing::ProcessResult result =
        testing::RunWithEveryCheckpoint(words, Path(run));
    EXPECT_EQ(result.exit_code, 0) << run << "\n" << result.output;
    Outcome outcome;
    if (result.exit_code != 0) return outcome;
    const auto summary = nlohmann::json::parse(Read(run + "/summary.json"));
    EXPECT_EQ(summary["steps"], kSteps);
    if (!from.empty()) {
      EXPECT_EQ(summary["start_step"], 20);
    }
    outcome.loss = summary["final_loss"];
    outcome.test_loss = summary["test"]["loss"];
    const auto reader =
        SafetensorsReader::Open(Path(run + "/weights.safetensors"));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return outcome;
    outcome.parameters = reader->tensors();
    for (size_t t = 0; t < outcome.parameters.size(); ++t) {
      outcome.weights.emplace_back(outcome.parameters[t].size());
      EXPECT_TRUE(reader->Read(t, absl::MakeSpan(outcome.weights.back())).ok());
    }
    return outcome;
  }

  static double Distance(const Outcome& a, const Outcome& b) {
    double difference = 0, norm = 0;
    EXPECT_EQ(a.parameters, b.parameters);
    if (a.parameters != b.parameters) return 1;
    for (size_t t = 0; t < a.weights.size(); ++t) {
      for (size_t i = 0; i < a.weights[t].size(); ++i) {
        const double x = a.weights[t][i], y = b.weights[t][i];
        difference += (x - y) * (x - y);
        norm += y * y;
      }
    }
    return std::sqrt(difference / norm);
  }
};

TEST_P(StrategyMatrixTest, EveryStrategyTrainsWhatASingleProcessTrains) {
  std::vector<testing::Strategy> strategies = testing::CollectiveStrategies();
  strategies.insert(strategies.begin(), testing::ParameterServerStrategy());
  const Outcome single = Run(testing::ParameterServerStrategy(), 1);
  const auto check = [&](const testing::Strategy& strategy, int workers) {
    const Outcome outcome = Run(strategy, workers);
    const double distance = Distance(outcome, single);
    std::printf("[ matrix ] %s %s, %d workers: distance %.1e\n",
                GetParam().label, strategy.label.c_str(), workers, distance);
    EXPECT_LT(distance, 2e-5) << strategy.label;
    EXPECT_NEAR(outcome.loss, single.loss, 1e-4) << strategy.label;
    EXPECT_NEAR(outcome.test_loss, single.test_loss, 1e-4) << strategy.label;
  };
  for (const testing::Strategy& strategy : strategies) check(strategy, 2);
  for (const testing::Strategy& strategy : testing::ModelParallelStrategies()) {
    check(strategy, strategy.model_size);
    check(strategy, 2 * strategy.model_size);
  }
  check(CutBothWays(), 4);
}

TEST_P(StrategyMatrixTest, AnyStrategyGoesOnFromTheCheckpointOfAnother) {
  const Outcome single = Run(testing::ParameterServerStrategy(), 1);
  const auto goes_on = [&](const testing::Strategy& strategy, int workers,
                           const std::string& from) {
    const double distance = Distance(Run(strategy, workers, from), single);
    EXPECT_LT(distance, 2e-5) << strategy.label << " after " << from;
  };
  const testing::Strategy sharded = testing::CollectiveStrategies()[1];
  goes_on(CutBothWays(), 4, "parameter_server-1");
  Run(CutBothWays(), 4);
  goes_on(sharded, 3, "tensor2_pipeline2-4");
  Run(sharded, 3);
  const testing::Strategy tensor = testing::ModelParallelStrategies()[0];
  goes_on(tensor, 2, "sharded-3");
  Run(tensor, 2);
  const testing::Strategy stages = testing::ModelParallelStrategies()[3];
  goes_on(stages, 2, "tensor2-2");
  Run(stages, 2);
  goes_on(testing::ParameterServerStrategy(), 1, "pipeline2_1f1b-2");
}

INSTANTIATE_TEST_SUITE_P(Models, StrategyMatrixTest,
                         ::testing::Values(Kind{"mlp", kMlp}, Kind{"cnn", kCnn},
                                           Kind{"gpt", kGpt}),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace tributary
