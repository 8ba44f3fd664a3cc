// SPDX-License-Identifier: Apache-2.0
// Evaluations within epochs, the best checkpoint and early stopping, with real
// processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kSoon;
using ::testing::Not;
using testing::Program;
using testing::RunningProcess;
namespace fs = std::filesystem;

// Few rows and a high rate, so that the test loss rises again. 25 steps an
// epoch.
constexpr char kEarlyStoppingJob[] = R"(name: early
model: {mlp: {in: 16, hidden: [64], out: 1}}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 100}}
  test: {synthetic: {kind: mlp_teacher, rows: 200, first_row: 1000000}}
  batch_size: 2
training: {epochs: 60, loss: mse, optimizer: {adam: {learning_rate: 0.01}}}
cluster: {servers: 2, workers: 2}
)";

class EarlyStoppingTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override { Write("job.yaml", kEarlyStoppingJob); }

  std::unique_ptr<RunningProcess> Start(std::vector<std::string> command) {
    command[0] = Program(command[0]);
    return RunningProcess::Start({.command = command, .folder = folder()});
  }
  std::unique_ptr<RunningProcess> Train(const std::string& run,
                                        std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"tributary", "train", "job.yaml", "--run-dir", run});
    return Start(words);
  }
  json Summary(const std::string& run) {
    return json::parse(Read(run + "/summary.json"));
  }
  // The first evaluation with the lowest loss.
  static json LowestLoss(const json& evaluations) {
    return *std::min_element(evaluations.begin(), evaluations.end(),
                             [](const json& a, const json& b) {
                               return a["test"]["loss"] < b["test"]["loss"];
                             });
  }
  // Exports this checkpoint and returns the file's bytes.
  std::string Exported(const std::string& checkpoint,
                       const std::vector<std::string>& words = {}) {
    std::vector<std::string> command = {"tributary", "export", checkpoint,
                                        "one.safetensors"};
    command.insert(command.end(), words.begin(), words.end());
    auto run = Start(command);
    EXPECT_EQ(run->Wait(kSoon), 0) << run->output();
    return Read("one.safetensors");
  }
  // The test loss that `tributary evaluate` finds.
  double Evaluated(const std::string& run,
                   const std::vector<std::string>& words) {
    std::vector<std::string> command = {"tributary", "evaluate", run, "--json"};
    command.insert(command.end(), words.begin(), words.end());
    auto evaluate = Start(command);
    EXPECT_EQ(evaluate->Wait(kSoon), 0) << evaluate->output();
    return json::parse(evaluate->output())["metrics"]["loss"];
  }
};

const std::vector<std::string> kBest = {
    "--set", "evaluation={every_steps: 10, keep_best: true}"};
const std::vector<std::string> kStop = {
    "--set", "evaluation={keep_best: true, stop_after: 4}"};

TEST_F(EarlyStoppingTest, WithinEpochsAndAtTheirEnds) {
  auto train = Train("run", {"--set", "training.epochs=2", "--set",
                             "evaluation.every_steps=10"});
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  std::vector<int64_t> steps;
  const json summary = Summary("run");
  for (const json& evaluation : summary["evaluations"]) {
    steps.push_back(evaluation["step"]);
  }
  EXPECT_THAT(steps, ElementsAre(10, 20, 25, 30, 40, 50));
  EXPECT_THAT(train->output(), HasSubstr("step 10: test loss"));
  EXPECT_THAT(train->output(), HasSubstr("epoch 1/2: test loss"));
  EXPECT_FALSE(summary.contains("best"));
}

TEST_F(EarlyStoppingTest, TheBestCheckpointStays) {
  std::vector<std::string> words = kBest;
  words.insert(words.end(), {"--set", "checkpoint={every_steps: 50, keep: 1}",
                             "--set", "training.epochs=40"});
  auto train = Train("run", words);
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  const json summary = Summary("run");
  const json lowest = LowestLoss(summary["evaluations"]);
  EXPECT_LT(lowest["step"], summary["steps"]) << "the job must overfit";
  EXPECT_EQ(summary["best"]["step"], lowest["step"]);
  EXPECT_EQ(summary["best"]["metric"], "loss");
  EXPECT_EQ(summary["best"]["value"], lowest["test"]["loss"]);
  EXPECT_EQ(summary["stopped_early"], false);
  const std::string folder =
      absl::StrCat("run/checkpoints/step-",
                   absl::Dec(lowest["step"].get<int64_t>(), absl::kZeroPad12));
  EXPECT_TRUE(fs::exists(Path(folder))) << folder;
  EXPECT_EQ(Read("run/best.safetensors"), Exported(folder));
  // A run directory stands for its best weights, unless --last is given.
  EXPECT_EQ(Read("run/best.safetensors"), Exported("run"));
  EXPECT_EQ(Read("run/weights.safetensors"), Exported("run", {"--last"}));
  EXPECT_THAT(train->output(),
              HasSubstr(absl::StrCat("(best.safetensors, step ",
                                     lowest["step"].get<int64_t>(), ")")));
  EXPECT_NEAR(Evaluated("run", {}), lowest["test"]["loss"].get<double>(), 1e-7);
  const json model = json::parse(Read("run/model.json"));
  EXPECT_EQ(model["metrics"]["best_weights_sha256"],
            summary["best"]["weights_sha256"]);
  EXPECT_EQ(summary["best"]["weights_sha256"].get<std::string>().size(), 64u);
  EXPECT_NEAR(Evaluated("run", {"--last"}),
              summary["test"]["loss"].get<double>(), 1e-7);
  EXPECT_EQ(std::distance(fs::directory_iterator(Path("run/checkpoints")),
                          fs::directory_iterator()),
            2)
      << "the best and the newest";
}

// The checkpoint of the best step holds slices, which a model cannot load.
TEST_F(EarlyStoppingTest, TheBestWeightsAreWholeWhereWorkersHoldSlices) {
  std::vector<std::string> words = kBest;
  words.insert(
      words.end(),
      {"--set", "model.mlp.hidden=[16, 16]", "--set", "training.epochs=2",
       "--set", "strategy={tensor_parallel: 2, pipeline_parallel: {stages: 2}}",
       "--set", "cluster={workers: 4, servers: 2}"});
  auto train = Train("run", words);
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  const json best = Summary("run")["best"];
  EXPECT_NEAR(Evaluated("run", {}), best["value"].get<double>(), 1e-6);
  EXPECT_EQ(Read("run/best.safetensors"), Exported("run"));
  EXPECT_EQ(Read("run/weights.safetensors"), Exported("run", {"--last"}));

  // This rate makes every later evaluation worse.
  auto resumed =
      Start({"tributary", "train", "--resume", "run", "--run-dir", "resumed",
             "--set", "strategy=parameter_server", "--set",
             "cluster={workers: 2}", "--set", "training.epochs=3", "--set",
             "training.optimizer.adam.learning_rate=1"});
  ASSERT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_EQ(Summary("resumed")["best"], best);
  EXPECT_EQ(Read("resumed/best.safetensors"), Read("run/best.safetensors"));
}

// If an evaluation left no checkpoint, its weights are lost.
TEST_F(EarlyStoppingTest, TheBestMustBeAtHand) {
  auto train = Train("run", {"--set", "evaluation.every_steps=10", "--set",
                             "training.epochs=8"});
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  auto resumed =
      Start({"tributary", "train", "--resume", "run", "--run-dir", "kept",
             "--set", "evaluation.keep_best=true", "--set", "training.epochs=9",
             "--set", "training.optimizer.adam.learning_rate=1"});
  ASSERT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_THAT(resumed->output(),
              HasSubstr("is not there: the weights of step 200 are the best "
                        "now"));
  EXPECT_EQ(Summary("kept")["best"]["step"], 200);
  EXPECT_EQ(Read("kept/best.safetensors"), Read("run/weights.safetensors"));
}

// The checkpoint of step 25 was written before that step was evaluated, and no
// rule leaves another one.
TEST_F(EarlyStoppingTest, TheWeightsOfTheStartMayBeTheBest) {
  auto train = Train("run", {"--set", "training.epochs=2", "--set",
                             "checkpoint={every_steps: 25, keep: 2}"});
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  auto resumed = Start({"tributary", "train", "--resume",
                        "run/checkpoints/step-000000000025", "--run-dir",
                        "resumed", "--set", "evaluation.keep_best=true",
                        "--set", "checkpoint={every_steps: 0, at_end: false}",
                        "--set", "training.optimizer.adam.learning_rate=1"});
  ASSERT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_EQ(Summary("resumed")["best"]["step"], 25);
  EXPECT_EQ(Read("resumed/best.safetensors"),
            Exported("run/checkpoints/step-000000000025"));
}

// A lower loss on other rows does not count as better.
TEST_F(EarlyStoppingTest, TheBestBeginsAnewWithOtherSamples) {
  std::vector<std::string> words = kBest;
  words.insert(words.end(), {"--set", "training.epochs=2"});
  auto train = Train("run", words);
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  const auto resume = [&](const std::string& run, const std::string& set) {
    auto resumed = Start({"tributary", "train", "--resume", "run", "--run-dir",
                          run, "--set", "training.epochs=3", "--set", set});
    EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
    return resumed->output();
  };
  EXPECT_THAT(resume("same", "seed=1"), Not(HasSubstr("does not count")));
  EXPECT_THAT(resume("others", "data.test.synthetic.first_row=2000000"),
              HasSubstr("does not count: model, loss, evaluated samples or "
                        "preprocessing are others now"));
  EXPECT_GT(Summary("others")["best"]["step"], 50);
  EXPECT_THAT(resume("model", "model.sequential.1=tanh"),
              HasSubstr("does not count: model, loss, "));
  EXPECT_GT(Summary("model")["best"]["step"], 50);
}

TEST_F(EarlyStoppingTest, StopsAtTheSameStepEveryTimeAndWithEveryStrategy) {
  std::vector<std::string> files;
  for (const char* strategy :
       {"parameter_server", "{all_reduce: {sharded: true}}",
        "{parameter_server: {wire: float32}}", "{data_parallel: {}}"}) {
    const std::string run = absl::StrCat("run-", files.size());
    std::vector<std::string> words = kStop;
    words.insert(words.end(), {"--set", absl::StrCat("strategy=", strategy)});
    auto train = Train(run, words);
    ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
    const json summary = Summary(run);
    EXPECT_EQ(summary["status"], "done");
    EXPECT_EQ(summary["stopped_early"], true) << train->output();
    EXPECT_LT(summary["steps"], summary["total_steps"]);
    EXPECT_EQ(summary["steps"].get<int64_t>(),
              summary["best"]["step"].get<int64_t>() + 4 * 25);
    EXPECT_THAT(train->output(),
                HasSubstr("4 evaluations without a better loss"));
    files.push_back(Read(run + "/best.safetensors") +
                    Read(run + "/weights.safetensors"));
    EXPECT_EQ(files.back(), files.front()) << strategy;
  }
}

TEST_F(EarlyStoppingTest, AStoppedRunDecidesAsAnUndisturbedOne) {
  auto whole = Train("whole", kStop);
  ASSERT_EQ(whole->Wait(kSoon), 0) << whole->output();
  auto train = Train("run", kStop);
  ASSERT_TRUE(train->WaitForOutput("epoch 1/60: test", kSoon));
  train->Signal(SIGTERM);
  ASSERT_EQ(train->Wait(kSoon), 128 + SIGTERM) << train->output();
  auto resumed =
      Start({"tributary", "train", "--resume", "run", "--run-dir", "resumed"});
  ASSERT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_EQ(Summary("resumed")["steps"], Summary("whole")["steps"]);
  EXPECT_EQ(Summary("resumed")["best"], Summary("whole")["best"]);
  for (const char* file : {"/weights.safetensors", "/best.safetensors"}) {
    EXPECT_EQ(Read(std::string("resumed") + file),
              Read(std::string("whole") + file))
        << file;
  }
}

}  // namespace
}  // namespace tributary
