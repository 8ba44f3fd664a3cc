// SPDX-License-Identifier: Apache-2.0
// Trainings with known results (PyTorch, float64) through `tributary train`:
// real processes on the loopback, with two servers or none.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files/safetensors.h"
#include "nlohmann/json.hpp"
#include "tests/testing/golden.h"
#include "tests/testing/npy.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/strategies.h"

namespace tributary {
namespace {

using testing::GoldenCase;
using testing::ReadGoldenGroup;

constexpr int64_t kRows = 1600;

struct Training {
  std::string label;
  std::string golden;     // case
  std::string prefix;     // of its expected values: "" or "workers2."
  std::string optimizer;  // YAML
  int workers = 1;
  int global_batch = 32;
  int accumulation = 1;
  std::string extra = "";  // further lines of the training block
  testing::Strategy strategy = testing::ParameterServerStrategy();
  // The file of the initial weights uses different names and another shape.
  bool foreign_file = false;

  friend void PrintTo(const Training& t, std::ostream* out) { *out << t.label; }
};

std::vector<Training> AllTrainings() {
  const std::string sgd = "{sgd: {learning_rate: 0.2}}";
  const std::string adam = "{adam: {learning_rate: 0.005}}";
  std::vector<Training> runs = {
      {"momentum", "momentum", "",
       "{sgd: {learning_rate: 0.05, momentum: 0.9}}"},
      {"nesterov_wd", "nesterov_wd", "",
       "{sgd: {learning_rate: 0.05, momentum: 0.9, nesterov: true, "
       "weight_decay: 0.001}}"},
      {"adamw_clip_warmcos", "adamw_clip_warmcos", "",
       "{adamw: {learning_rate: 0.01, weight_decay: 0.05}}", 1, 32, 1,
       "  clip_norm: 0.5\n"
       "  learning_rate_schedule: {warmup_cosine: {warmup: 5, total: 50, "
       "eta_min: 0.001}}\n"},
      {"lamb", "lamb", "",
       "{lamb: {learning_rate: 0.02, weight_decay: 0.01, epsilon: 1e-6}}"},
      {"adagrad", "adagrad", "", "{adagrad: {learning_rate: 0.05}}"},
      {"rmsprop", "rmsprop", "", "{rmsprop: {learning_rate: 0.002}}"},
      {"accumulate2", "accumulate2", "", sgd, 1, 32, 2},
      {"accumulate2_workers2", "accumulate2", "", sgd, 2, 32, 2},
      {"uneven3_weighted", "uneven3_weighted", "", sgd, 3},
  };
  for (int workers : {1, 2, 4}) {
    const std::string prefix =
        workers == 1 ? "" : absl::StrCat("workers", workers, ".");
    runs.push_back(
        {absl::StrCat("sgd_", workers), "sgd", prefix, sgd, workers});
    runs.push_back(
        {absl::StrCat("adam_", workers), "adam", prefix, adam, workers});
  }
  // For several workers, cases without their own expected values use those of
  // one worker: equal in exact arithmetic, and within the tolerances here.
  const size_t single = 6;
  for (size_t i = 0; i < single; ++i) {
    for (int workers : {2, 4}) {
      Training run = runs[i];
      run.workers = workers;
      run.label += absl::StrCat("_", workers);
      runs.push_back(run);
    }
  }
  const std::vector<Training> served = runs;
  for (const testing::Strategy& strategy : testing::CollectiveStrategies()) {
    for (Training run : served) {
      if (run.workers == 1 || run.workers == 4) continue;
      run.strategy = strategy;
      run.label += absl::StrCat("_", strategy.label);
      runs.push_back(run);
    }
  }
  const std::set<std::string> kCutToo = {"sgd", "adam", "accumulate2",
                                         "adamw_clip_warmcos"};
  // Uses as many replicas as the other strategies have workers, each replica on
  // several workers.
  for (const testing::Strategy& strategy : testing::ModelParallelStrategies()) {
    for (Training run : served) {
      if (run.workers > 2 || kCutToo.count(run.golden) == 0) continue;
      run.strategy = strategy;
      run.workers *= strategy.model_size;
      run.label += absl::StrCat("_", strategy.label);
      runs.push_back(run);
    }
  }
  Training foreign = {"foreign_file", "sgd", "", sgd};
  foreign.foreign_file = true;
  runs.push_back(foreign);
  foreign.strategy = testing::ModelParallelStrategies().front();
  foreign.workers *= foreign.strategy.model_size;
  foreign.label += absl::StrCat("_", foreign.strategy.label);
  runs.push_back(foreign);
  for (int workers : {1, 2, 4}) {
    const auto delayed = [&](const std::string& golden,
                             const std::string& optimizer,
                             const std::string& extra = "") {
      runs.push_back({absl::StrCat(golden, "_delayed_", workers), golden, "",
                      optimizer, workers, 32, 1, extra,
                      testing::DelayedStrategy()});
    };
    delayed("sgd", "{sgd: {learning_rate: 0.1}}");
    delayed("momentum", "{sgd: {learning_rate: 0.02, momentum: 0.9}}");
    delayed("adamw_clip", "{adamw: {learning_rate: 0.01, weight_decay: 0.05}}",
            "  clip_norm: 0.5\n");
  }
  return runs;
}

class GoldenTrainingTest : public ::testing::TestWithParam<Training> {
 protected:
  static void SetUpTestSuite() {
    group_ = new auto(ReadGoldenGroup("train_mlp"));
    delayed_ = new auto(ReadGoldenGroup("train_delayed"));
  }
  static const GoldenCase& Shared() { return group_->at("shared"); }

  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              absl::StrCat("golden-", GetParam().label, "-", getpid());
    std::filesystem::create_directories(folder_);
    WriteData();
    WriteInitialWeights();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Writes the samples in the order in which training uses them.
  void WriteData() {
    const std::vector<double> data = Shared().Tensor("data").Doubles();
    const std::vector<int64_t> labels = Shared().Tensor("label").Integers();
    const std::vector<int64_t> order = Shared().Tensor("order").Integers();
    std::vector<float> features;
    std::vector<int64_t> ordered;
    for (int64_t row : order) {
      for (int i = 0; i < 64; ++i) {
        features.push_back(static_cast<float>(data[row * 64 + i] / 16));
      }
      ordered.push_back(labels[row]);
    }
    testing::WriteNpy(folder_ / "x.npy", {kRows, 64}, features);
    testing::WriteNpy(folder_ / "y.npy", {kRows}, ordered);
  }

  void WriteInitialWeights() {
    std::vector<std::vector<float>> values;
    std::vector<const float*> pointers;
    for (const char* name : {"init.w0", "init.b0", "init.w1", "init.b1"}) {
      values.push_back(Shared().Tensor(name).Floats());
    }
    for (const auto& tensor : values) pointers.push_back(tensor.data());
    const ParameterSpecs specs =
        GetParam().foreign_file ? ForeignSpecs() : Specs();
    ASSERT_TRUE(
        WriteSafetensors(folder_ / "init.safetensors", specs, pointers).ok());
  }

  static ParameterSpecs ForeignSpecs() {
    return {{"body.weight", {32, 8, 8}},
            {"body.bias", {32}},
            {"head.weight", {10, 32}},
            {"head.bias", {10}}};
  }
  static constexpr char kForeignRules[] =
      "  initialize_rules:\n"
      "    - {tensors: 0.*, from: body.*, reshape: true}\n"
      "    - {tensors: 2.*, from: head.*}\n";

  static ParameterSpecs Specs() {
    return {{"0.weight", {32, 64}},
            {"0.bias", {32}},
            {"2.weight", {10, 32}},
            {"2.bias", {10}}};
  }

  void WriteJob(const Training& run) {
    std::ofstream(folder_ / "job.yaml") << absl::StrCat(
        "name: golden\n"
        "device: cpu\n"
        "model:\n"
        "  sequential:\n"
        "    - linear: {in: 64, out: 32}\n"
        "    - relu: {}\n"
        "    - linear: {in: 32, out: 10}\n"
        "  initialize_from: init.safetensors\n",
        run.foreign_file ? kForeignRules : "",
        "data:\n"
        "  train: {npy: {features: x.npy, labels: y.npy}}\n"
        "  global_batch_size: ",
        run.global_batch,
        "\n"
        "  shuffle: none\n"
        "training:\n"
        "  steps: ",
        50 / run.accumulation,
        "\n"
        "  loss: cross_entropy\n"
        "  gradient_accumulation: ",
        run.accumulation,
        "\n"
        "  optimizer: ",
        run.optimizer, "\n", run.extra, run.strategy.Yaml(run.workers));
  }

  std::vector<double> Losses() const {
    std::vector<double> losses;
    std::ifstream file(folder_ / "run/metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      losses.push_back(nlohmann::json::parse(line).at("loss"));
    }
    return losses;
  }

  static inline std::map<std::string, GoldenCase>* group_ = nullptr;
  static inline std::map<std::string, GoldenCase>* delayed_ = nullptr;
  std::filesystem::path folder_;
};

TEST_P(GoldenTrainingTest, LossesAndWeightsAreThoseOfPytorch) {
  const Training& run = GetParam();
  WriteJob(run);
  const testing::ProcessResult result =
      testing::RunProcess({testing::Program("tributary"), "train",
                           folder_ / "job.yaml", "--run-dir", folder_ / "run"});
  ASSERT_EQ(result.exit_code, 0) << result.output;

  const bool late = run.strategy.label == testing::DelayedStrategy().label;
  const GoldenCase& golden = (late ? delayed_ : group_)->at(run.golden);
  double worst = golden.ErrorOverTolerance(run.prefix + "loss", Losses());
  const auto weights =
      ReadSafetensors(folder_ / "run/weights.safetensors", Specs());
  ASSERT_TRUE(weights.ok()) << weights.status();
  const std::vector<std::string> names = {"final.w0", "final.b0", "final.w1",
                                          "final.b1"};
  for (size_t i = 0; i < names.size(); ++i) {
    worst = std::max(
        worst, golden.ErrorOverTolerance(run.prefix + names[i], (*weights)[i]));
  }
  std::printf("[ golden ] train_mlp %s %s, worst error/tolerance %.3f\n",
              run.strategy.label.c_str(), run.label.c_str(), worst);
  EXPECT_LE(worst, 1.0);
}

INSTANTIATE_TEST_SUITE_P(Runs, GoldenTrainingTest,
                         ::testing::ValuesIn(AllTrainings()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace tributary
