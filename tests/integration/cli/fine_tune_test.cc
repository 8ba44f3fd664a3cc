// SPDX-License-Identifier: Apache-2.0
// Training that starts from the weights of another model: real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files/safetensors.h"
#include "nlohmann/json.hpp"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/strategies.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Weights = std::map<std::string, std::vector<float>>;

constexpr char kData[] = R"(data:
  train: {synthetic: {kind: mlp_teacher, rows: 400}}
  global_batch_size: 40
)";
constexpr char kBase[] = R"(name: base
device: cpu
model:
  sequential:
    - linear: {in: 16, out: 64}
    - tanh
    - linear: {in: 64, out: 1}
training: {epochs: 2, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
)";
// The body of kBase with a new head of two layers.
constexpr char kTuned[] = R"(name: tuned
device: cpu
seed: 5
model:
  RULES
  sequential:
    - linear: {in: 16, out: 64}
    - tanh
    - linear: {in: 64, out: 32}
    - tanh
    - linear: {in: 32, out: 1}
)";
constexpr char kNewHead[] =
    "initialize_from: base\n"
    "  initialize_rules: [{tensors: [2.*, 4.*], fresh: true}]";

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class FineTuneTest : public testing::TemporaryFolderTest {
 protected:
  testing::ProcessResult Train(const std::string& job, const std::string& run,
                               const std::vector<std::string>& more = {}) {
    Write(run + ".yaml", job);
    std::vector<std::string> words = {testing::Program("tributary"), "train",
                                      Path(run + ".yaml"), "--run-dir",
                                      Path(run)};
    words.insert(words.end(), more.begin(), more.end());
    return testing::RunWithEveryCheckpoint(words, Path(run));
  }
  void MustTrain(const std::string& job, const std::string& run,
                 const std::vector<std::string>& more = {}) {
    const testing::ProcessResult result = Train(job, run, more);
    ASSERT_EQ(result.exit_code, 0) << run << "\n" << result.output;
  }
  void TrainBase() { MustTrain(absl::StrCat(kBase, kData), "base"); }

  static std::string Tuned(const std::string& rules) {
    std::string job = absl::StrCat(kTuned, kData);
    return job.replace(job.find("RULES"), 5, rules);
  }

  Weights Read(const std::string& file) {
    Weights weights;
    const auto reader = SafetensorsReader::Open(Path(file));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return weights;
    for (size_t t = 0; t < reader->tensors().size(); ++t) {
      const ParameterSpec& tensor = reader->tensors()[t];
      std::vector<float>& values = weights[tensor.name];
      values.resize(tensor.size());
      EXPECT_TRUE(reader->Read(t, absl::MakeSpan(values)).ok());
    }
    return weights;
  }
  std::string Sha256(const std::string& run) {
    return nlohmann::json::parse(
        TemporaryFolderTest::Read(run + "/summary.json"))["weights_sha256"];
  }
};

// All parameters are frozen, so that a run ends with its initial weights.
TEST_F(FineTuneTest, EveryStrategyStartsFromTheSameBits) {
  TrainBase();
  constexpr char kFrozen[] =
      "training: {steps: 2, loss: mse, optimizer: {sgd: {learning_rate: 0.1}},"
      " parameter_groups: [{parameters: \"*\", frozen: true}]}\n";
  MustTrain(Tuned("") + kFrozen, "seeded");
  const Weights seeded = Read("seeded/weights.safetensors");
  const Weights base = Read("base/weights.safetensors");
  std::vector<testing::Strategy> strategies = testing::CollectiveStrategies();
  strategies.push_back(testing::ParameterServerStrategy());
  for (const testing::Strategy& s : testing::ModelParallelStrategies()) {
    strategies.push_back(s);
  }
  for (const testing::Strategy& strategy : strategies) {
    MustTrain(absl::StrCat(Tuned(kNewHead), kFrozen, strategy.Yaml(2)),
              strategy.label);
    const Weights weights = Read(strategy.label + "/weights.safetensors");
    ASSERT_EQ(weights.size(), 6u);
    for (const auto& [name, values] : weights) {
      const Weights& wanted = name[0] == '0' ? base : seeded;
      EXPECT_TRUE(SameBits(values, wanted.at(name)))
          << strategy.label << ": " << name;
    }
  }
  EXPECT_FALSE(SameBits(base.at("0.weight"), seeded.at("0.weight")));
}

TEST_F(FineTuneTest, AFrozenBodyKeepsItsBitsWhileTheHeadLearns) {
  TrainBase();
  const std::string job = absl::StrCat(
      Tuned(kNewHead),
      "training: {epochs: 2, loss: mse, optimizer: adamw, parameter_groups: "
      "[{parameters: 0.*, frozen: true}]}\ncluster: {servers: 2, workers: 2}\n"
      "checkpoint: {every_steps: 5}\n");
  MustTrain(job, "tuned");
  const Weights base = Read("base/weights.safetensors");
  const Weights tuned = Read("tuned/weights.safetensors");
  EXPECT_TRUE(SameBits(tuned.at("0.weight"), base.at("0.weight")));
  EXPECT_TRUE(SameBits(tuned.at("0.bias"), base.at("0.bias")));
  const auto losses = TemporaryFolderTest::Read("tuned/metrics.jsonl");
  EXPECT_FALSE(losses.empty());

  // The run's own job.yaml names the file, so training it gives the same bits.
  const std::string resolved = TemporaryFolderTest::Read("tuned/job.yaml");
  EXPECT_THAT(resolved, HasSubstr(Path("base/weights.safetensors")));
  MustTrain(resolved, "again");
  EXPECT_EQ(Sha256("again"), Sha256("tuned"));
  MustTrain(resolved, "resumed",
            {"--resume", Path("tuned/checkpoints/step-000000000010")});
  EXPECT_EQ(Sha256("resumed"), Sha256("tuned"));
  const double first =
      nlohmann::json::parse(losses.substr(0, losses.find('\n')))["loss"];
  const double last = nlohmann::json::parse(
      TemporaryFolderTest::Read("tuned/summary.json"))["final_loss"];
  EXPECT_LT(last, first);
}

// The file of the initial weights is read only before the first step.
TEST_F(FineTuneTest, ARunThatGoesOnDoesNotNeedTheFile) {
  TrainBase();
  MustTrain(absl::StrCat(Tuned(kNewHead),
                         "training: {steps: 20, loss: mse, optimizer: adamw}\n"
                         "checkpoint: {every_steps: 5, keep: 9}\n"),
            "tuned");
  std::filesystem::remove_all(Path("base"));
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), testing::Program("tributary"));
    return testing::RunProcess(words);
  };
  testing::ProcessResult result =
      run({"train", "--resume", Path("tuned/checkpoints/step-000000000010"),
           "--run-dir", Path("resumed")});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, Not(HasSubstr("changed since")));
  EXPECT_EQ(Sha256("resumed"), Sha256("tuned"));
  EXPECT_THAT(TemporaryFolderTest::Read("resumed/job.yaml"),
              HasSubstr(Path("base/weights.safetensors")));
  result = run({"evaluate", Path("tuned"), "--data", "train"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  result = run({"replay", Path("tuned"), "--step", "8"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  result = run({"replay", Path("tuned"), "--step", "3"});
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("job.yaml: model.initialize_from wants "
                                       "a file, but "));
}

TEST_F(FineTuneTest, AChangedFileIsTheCauseOfOtherSteps) {
  TrainBase();
  const std::string file = Path("start.safetensors");
  std::filesystem::copy(Path("base/weights.safetensors"), file);
  const std::string job = absl::StrReplaceAll(
      Tuned(kNewHead) + "training: {steps: 4, loss: mse, optimizer: adamw}\n",
      {{"initialize_from: base", "initialize_from: start.safetensors"}});
  MustTrain(job, "a");
  Weights weights = Read("start.safetensors");
  ParameterSpecs specs;
  std::vector<const float*> data;
  for (auto& [name, values] : weights) {
    specs.push_back({name, {static_cast<int64_t>(values.size())}});
    if (name == "0.weight") specs.back().shape = {64, 16};
    if (name == "2.weight") specs.back().shape = {1, 64};
    values[0] += 1;
    data.push_back(values.data());
  }
  ASSERT_TRUE(WriteSafetensors(file, specs, data).ok());
  MustTrain(job, "b");
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), testing::Program("tributary"));
    return testing::RunProcess(words);
  };
  testing::ProcessResult result = run({"bisect", Path("a"), Path("b")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output,
              HasSubstr("Cause, in " + Path("a") +
                        " and now: checksum of the initial weights is "));
  EXPECT_THAT(result.output, Not(HasSubstr("fault of memory")));
  result = run({"replay", Path("a"), "--step", "3"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output,
              HasSubstr(": different\ncause, in the run and now: checksum of "
                        "the initial weights is "));
  result = run({"replay", Path("b"), "--step", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  result = run({"compare", "--from", Path("a"), "--from", Path("b")});
  EXPECT_THAT(result.output, HasSubstr("the initial weights of " + Path("a") +
                                       " and " + Path("b") + " differ: "));
}

TEST_F(FineTuneTest, ABestWeightsFileComesBeforeTheLast) {
  MustTrain(absl::StrCat(kBase, kData,
                         "  test: {synthetic: {kind: mlp_teacher, rows: 50, "
                         "first_row: 1000}}\nevaluation: {keep_best: true}\n"),
            "base");
  const testing::ProcessResult result =
      Train(Tuned(kNewHead) + "training: {steps: 1, loss: mse, optimizer: sgd}",
            "tuned",
            {"--dry-run", "--set", "training.optimizer.sgd.learning_rate=1"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output,
              HasSubstr("initialize_from: " + Path("base/best.safetensors")));
}

TEST_F(FineTuneTest, WeightsThatHaveChangedSinceTheirRunAreRefused) {
  TrainBase();
  const std::string job =
      absl::StrReplaceAll(absl::StrCat(kBase, kData),
                          {{"model:\n", "model:\n  initialize_from: base\n"}});
  MustTrain(job, "same");
  std::string bytes = TemporaryFolderTest::Read("base/weights.safetensors");
  bytes[bytes.size() - 4] ^= 1;
  Write("base/weights.safetensors", bytes);
  const testing::ProcessResult result = Train(job, "changed");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output,
              HasSubstr(absl::StrCat(Path("base/weights.safetensors"),
                                     " has changed since the run ")));
}

TEST_F(FineTuneTest, AFileThatDoesNotFitIsRefusedInOneLineBeforeTheStart) {
  TrainBase();
  const int files = NumFiles();
  const testing::ProcessResult result =
      Train(Tuned("initialize_from: base\n"
                  "  initialize_rules:\n"
                  "    - {tensors: 2.*, fresh: true}") +
                "training: {steps: 1, loss: mse, optimizer: adamw}\n",
            "tuned");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(
      result.output,
      StartsWith(absl::StrCat(
          "tributary: ", Path("tuned.yaml"),
          ":5: model.initialize_from: ", Path("base/weights.safetensors"),
          ": wants a tensor \"4.weight\" of shape [1, 32], there is none; give "
          "it a rule in model.initialize_rules, ")));
  EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1)
      << result.output;
  EXPECT_EQ(NumFiles(), files + 1) << "only the job file is new";
}

}  // namespace
}  // namespace tributary
