// SPDX-License-Identifier: Apache-2.0
// `tributary train` and daemons that are started by hand: real processes and
// real training on generated data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "common/job/job_file.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::IsGone;
using testing::kSoon;
using ::testing::Not;
using testing::RunningProcess;
namespace fs = std::filesystem;

constexpr char kJob[] = R"(name: small
model:
  sequential:
    - linear: {in: 16, out: 64}
    - tanh
    - linear: {in: 64, out: 1}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 1000}}
  test: {synthetic: {kind: mlp_teacher, rows: 200, first_row: 1000000}}
  batch_size: 20
training: {epochs: 4, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
cluster: {servers: 2, workers: 2}
)";

using testing::Program;

class TrainTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override { Write("job.yaml", kJob); }

  std::unique_ptr<RunningProcess> Start(std::vector<std::string> command,
                                        bool terminal = false) {
    command[0] = Program(command[0]);
    return RunningProcess::Start(
        {.command = command, .folder = folder(), .terminal = terminal});
  }
  std::unique_ptr<RunningProcess> Train(
      const std::vector<std::string>& words = {}) {
    std::vector<std::string> command = {"tributary", "train", "job.yaml",
                                        "--run-dir", "run"};
    command.insert(command.end(), words.begin(), words.end());
    return Start(command);
  }

  json Summary(const std::string& run = "run") {
    return json::parse(Read(run + "/summary.json"));
  }
  std::vector<json> Metrics(const std::string& run = "run") {
    std::vector<json> lines;
    std::istringstream text(Read(run + "/metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      lines.push_back(json::parse(line));
    }
    return lines;
  }
  std::string WeightsSha256(const std::string& run = "run") {
    const auto reader =
        SafetensorsReader::Open(Path(run + "/weights.safetensors")).value();
    const ParameterSpecs specs = {{"0.weight", {64, 16}},
                                  {"0.bias", {64}},
                                  {"2.weight", {1, 64}},
                                  {"2.bias", {1}}};
    const auto tensors =
        ReadSafetensors(Path(run + "/weights.safetensors"), specs).value();
    std::vector<const float*> data;
    for (const auto& tensor : tensors) data.push_back(tensor.data());
    return tributary::WeightsSha256(specs, data);
  }
  void ExpectNoProcessLeft(const std::string& run = "run") {
    const json summary = Summary(run);
    for (const json& process : summary.at("processes")) {
      if (process.contains("pid")) {
        EXPECT_TRUE(IsGone(process["pid"], kSoon)) << process;
      }
    }
  }
  // The pid in the line "worker 1 is HOST (pid N)" of the coordinator's log.
  pid_t PidOf(const std::string& name) {
    std::smatch match;
    const std::string log = Read("run/logs/coordinator.log");
    return std::regex_search(log, match,
                             std::regex(name + " is .*pid ([0-9]+)"))
               ? std::stoi(match[1])
               : 0;
  }
  // The coordinator's address from the first line of the output.
  static std::string Address(RunningProcess& process) {
    EXPECT_TRUE(process.WaitForOutput("coordinator 127", kSoon) &&
                process.WaitForOutput("\n", kSoon));
    std::smatch match;
    EXPECT_TRUE(std::regex_search(process.output(), match,
                                  std::regex("coordinator ([0-9.]+:[0-9]+)")))
        << process.output();
    return match[1];
  }
};

TEST_F(TrainTest, WholeRunLeavesEverythingInItsDirectory) {
  auto train = Train();
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  // 1000 samples, 40 per step, 4 epochs: 100 steps.
  const std::vector<json> metrics = Metrics();
  ASSERT_EQ(metrics.size(), 100u);
  uint64_t samples = 0;
  for (size_t i = 0; i < metrics.size(); ++i) {
    EXPECT_EQ(metrics[i]["step"], i + 1);
    EXPECT_EQ(metrics[i]["epoch"], i / 25 + 1);
    EXPECT_EQ(metrics[i]["learning_rate"], 0.1);
    samples += metrics[i]["samples"].get<uint64_t>();
  }
  EXPECT_EQ(samples, 4000u);
  EXPECT_LT(metrics.back()["loss"], metrics.front()["loss"]);

  const json summary = Summary();
  EXPECT_EQ(summary["status"], "done");
  EXPECT_EQ(summary["steps"], 100);
  EXPECT_EQ(summary["epochs"], 4);
  EXPECT_EQ(summary["final_loss"], metrics.back()["loss"]);
  EXPECT_EQ(summary["evaluations"].size(), 4u);
  EXPECT_TRUE(summary["test"].contains("r2"));
  EXPECT_EQ(summary["processes"].size(), 5u);
  for (const json& process : summary["processes"]) {
    EXPECT_GT(process["peak_memory_bytes"], 1 << 20);
  }
  EXPECT_GT(summary["bytes"]["sent_by_workers"], 0);
  EXPECT_EQ(summary["weights_sha256"], WeightsSha256());
  EXPECT_TRUE(ReadJobFile(Path("run/job.yaml")).ok());
  for (const char* log :
       {"coordinator", "server-0", "server-1", "worker-0", "worker-1"}) {
    EXPECT_NE(Read(std::string("run/logs/") + log + ".log"), "") << log;
  }
  ExpectNoProcessLeft();
}

TEST_F(TrainTest, PipeGetsPlainLinesAndAShortResult) {
  auto train = Train();
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  const std::string& output = train->output();
  EXPECT_THAT(output, HasSubstr("step 100/100 (100%), epoch 4/4: loss "));
  EXPECT_THAT(output, HasSubstr("\nepoch 1/4: test loss "));
  EXPECT_THAT(output, HasSubstr("\ndone: 100 of 100 steps in "));
  EXPECT_THAT(output, HasSubstr("\nrun directory: run\n"));
  EXPECT_THAT(output, HasSubstr(WeightsSha256()));
  EXPECT_THAT(output, Not(HasSubstr("\r")));
}

TEST_F(TrainTest, TerminalGetsABarInPlace) {
  auto train = Start({"tributary", "train", "job.yaml", "--run-dir", "run"},
                     /*terminal=*/true);
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(),
              HasSubstr("\r\x1b[Kepoch 4/4 [==============================] "
                        "100% 100/100  loss "));
}

TEST_F(TrainTest, LogsBearTheRanksOfTheirProcesses) {
  auto train = Train();
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(Read("run/logs/worker-0.log"), HasSubstr("rank 0 of 2"));
  EXPECT_THAT(Read("run/logs/worker-1.log"), HasSubstr("rank 1 of 2"));
  EXPECT_THAT(Read("run/logs/server-1.log"), HasSubstr("serving shard 1 of 2"));
}

TEST_F(TrainTest, InterruptStopsAtACommonStepAndSavesTheWeights) {
  auto train = Train({"--set", "training.epochs=1000000"});
  ASSERT_TRUE(train->WaitForOutput("epoch 2/1000000: test", kSoon))
      << train->output();
  train->Signal(SIGINT);
  EXPECT_EQ(train->Wait(kSoon), 130) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("\ninterrupted: "));
  const json summary = Summary();
  EXPECT_EQ(summary["status"], "interrupted");
  EXPECT_EQ(summary["weights_sha256"], WeightsSha256());
  EXPECT_EQ(summary["steps"], Metrics().back()["step"]);
  EXPECT_EQ(summary["evaluations"].back()["step"], summary["steps"]);
  ExpectNoProcessLeft();
}

TEST_F(TrainTest, ADivergingRunSaysSoAndCanFail) {
  const std::vector<std::string> wild = {
      "--set",
      "data={train: {synthetic: {kind: markov_text, rows: 2000}}, "
      "batch_size: 20}",
      "--set",
      "model={mlp: {in: 32, hidden: [32], out: 16}}",
      "--set",
      "training={epochs: 4, loss: cross_entropy, optimizer: {sgd: "
      "{learning_rate: 1000}}}"};
  auto train = Train(wild);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("training diverges: the mean loss of "
                                         "the last 10 steps"));
  std::vector<std::string> strict = {"tributary", "train", "job.yaml",
                                     "--run-dir", "strict"};
  strict.insert(strict.end(), wild.begin(), wild.end());
  strict.insert(strict.end(), {"--set", "training.divergence=fail"});
  train = Start(strict);
  EXPECT_EQ(train->Wait(kSoon), 1) << train->output();
  EXPECT_THAT(Summary("strict")["message"].get<std::string>(),
              HasSubstr("training diverges"));
}

TEST_F(TrainTest, TerminationSignalIsAnInterruptToo) {
  auto train = Train({"--set", "training.epochs=1000000"});
  ASSERT_TRUE(train->WaitForOutput("epoch 1/1000000: test", kSoon));
  train->Signal(SIGTERM);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGTERM);
  EXPECT_EQ(Summary()["status"], "interrupted");
}

TEST_F(TrainTest, SecondInterruptEndsEverythingAtOnce) {
  auto train = Train({"--set", "training.epochs=1000000"});
  ASSERT_TRUE(train->WaitForOutput("epoch 1/1000000: test", kSoon));
  // A stopped worker delays the job's stop.
  const pid_t worker = PidOf("worker 1");
  ASSERT_GT(worker, 0);
  kill(worker, SIGSTOP);
  train->Signal(SIGINT);
  ASSERT_TRUE(train->WaitForOutput("stopping at the next common step", kSoon));
  // Signals within a second of the first one count as the same request.
  const absl::Time deadline = absl::Now() + kSoon;
  do {
    train->Signal(SIGINT);
  } while (
      !train->WaitForOutput("interrupted again", absl::Milliseconds(100)) &&
      absl::Now() < deadline);
  EXPECT_EQ(train->Wait(kSoon), 130);
  for (const char* name : {"server 0", "server 1", "worker 0", "worker 1"}) {
    EXPECT_TRUE(IsGone(PidOf(name), kSoon)) << name;
  }
}

TEST_F(TrainTest, KilledWorkerFailsTheRunByName) {
  auto train = Train({"--set", "training.epochs=1000000", "--set",
                      "cluster.on_worker_loss=fail"});
  ASSERT_TRUE(train->WaitForOutput("epoch 1/1000000: test", kSoon));
  const pid_t worker = PidOf("worker 1");
  ASSERT_GT(worker, 0);
  kill(worker, SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 1);
  EXPECT_THAT(
      train->output(),
      ContainsRegex(
          "\ntributary: worker 1 \\(.+, pid [0-9]+\\) was lost, "
          "last heard at step [0-9]+: worker-1 was killed by signal 9"));
  EXPECT_EQ(Summary()["status"], "failed");
  ExpectNoProcessLeft();
}

TEST_F(TrainTest, ARemovedRecordFailsTheRunWhoseSummarySaysSo) {
  auto train = Train({"--set", "training.epochs=1000000"});
  ASSERT_TRUE(train->WaitForOutput("epoch 1/1000000: test", kSoon));
  fs::remove(Path("run/metrics.jsonl"));
  EXPECT_EQ(train->Wait(kSoon), 1);
  const std::string cause = "metrics.jsonl was removed while the job was ";
  EXPECT_EQ(Summary()["status"], "failed");
  EXPECT_THAT(Summary()["message"].get<std::string>(), HasSubstr(cause));
  const std::string& output = train->output();
  EXPECT_EQ(output.find(cause), output.rfind(cause)) << output;
  EXPECT_NE(output.find(cause), std::string::npos) << output;
}

TEST_F(TrainTest, StepsThatChangeNothingAreTold) {
  auto train = Train({"--set", "training.nonfinite=skip", "--set",
                      "training.optimizer={sgd: {learning_rate: 1e38}}",
                      "--set", "training.epochs=1"});
  EXPECT_EQ(train->Wait(kSoon), 0);
  EXPECT_THAT(train->output(),
              ContainsRegex("step [0-9]+ changed nothing, because a gradient "
                            "was not finite"));
  EXPECT_THAT(Read("run/logs/server-0.log") + Read("run/logs/server-1.log"),
              ContainsRegex("the gradient of rank [01] for step [0-9]+ is not "
                            "finite in \"[02].(weight|bias)\", element [0-9]+; "
                            "the step changes nothing"));
}

TEST_F(TrainTest, WrongDataAreRefusedBeforeTheRun) {
  Write("x.npy", "not an array");
  Write("y.npy", "not an array");
  Write("job.yaml", R"(name: broken
model: {sequential: [{linear: {in: 4, out: 2}}]}
data:
  train: {npy: {features: x.npy, labels: y.npy}}
  batch_size: 4
training: {steps: 5, loss: cross_entropy, optimizer: adam}
)");
  auto train = Train();
  EXPECT_EQ(train->Wait(kSoon), 2);
  EXPECT_THAT(train->output(), HasSubstr("tributary: job.yaml:4: "));
  EXPECT_THAT(train->output(), HasSubstr("x.npy"));
  EXPECT_FALSE(std::filesystem::exists(Path("run")));
}

TEST_F(TrainTest, StatusShowsTheRunningJob) {
  auto train = Train({"--set", "training.epochs=1000000"});
  const std::string address = Address(*train);
  ASSERT_TRUE(train->WaitForOutput("epoch 1/1000000: test", kSoon));
  auto status = Start({"tributary", "status", "--coordinator", address});
  EXPECT_EQ(status->Wait(kSoon), 0);
  EXPECT_THAT(status->output(), HasSubstr("small: running"));
  EXPECT_THAT(status->output(), HasSubstr("server 1    alive"));
  EXPECT_THAT(status->output(), HasSubstr("worker 1    alive"));
  train->Signal(SIGINT);
  EXPECT_EQ(train->Wait(kSoon), 130);
}

TEST_F(TrainTest, TakenPortIsRefusedBeforeAnythingBegins) {
  auto train = Train({"--set", "training.epochs=1000000"});
  const std::string address = Address(*train);
  auto second = Start({"tributary", "train", "job.yaml", "--run-dir", "other",
                       "--listen", address});
  EXPECT_EQ(second->Wait(kSoon), 2);
  EXPECT_THAT(second->output(),
              HasSubstr("tributary: cannot listen on " + address));
  EXPECT_FALSE(fs::exists(Path("other")));
}

TEST_F(TrainTest, DaemonsStartedByHandInAnyOrderTrainTheSameWeights) {
  // Workers and servers start first and wait for a coordinator on a port that
  // is free at that time.
  auto probe = Start({"tributary-coordinator", "--job", "job.yaml", "--run-dir",
                      "probe", "--listen", "127.0.0.1:0"});
  const std::string address = Address(*probe);
  probe->Signal(SIGINT);
  EXPECT_EQ(probe->Wait(kSoon), 130);

  auto worker0 = Start({"tributary-worker", "--coordinator", address});
  auto server0 = Start({"tributary-server", "--coordinator", address});
  auto worker1 = Start({"tributary-worker", "--coordinator", address});
  auto coordinator =
      Start({"tributary-coordinator", "--job", "job.yaml", "--run-dir", "run",
             "--listen", address, "--log-format", "json"});
  ASSERT_TRUE(coordinator->WaitForOutput("waits for", kSoon));
  auto server1 = Start({"tributary-server", "--coordinator", address});
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (const absl::string_view line :
       absl::StrSplit(coordinator->output(), '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(json::parse(line, nullptr, false).contains("message")) << line;
  }
  for (auto* member : {&server0, &server1, &worker0, &worker1}) {
    EXPECT_EQ((*member)->Wait(kSoon), 0) << (*member)->output();
  }
  EXPECT_EQ(Summary()["status"], "done");

  auto train = Start({"tributary", "train", "job.yaml", "--run-dir", "local"});
  ASSERT_EQ(train->Wait(kSoon), 0);
  EXPECT_EQ(Summary("local")["weights_sha256"], Summary()["weights_sha256"]);
}

TEST_F(TrainTest, CoordinatorWhoseMembersNeverComeSaysWhom) {
  auto coordinator =
      Start({"tributary-coordinator", "--job", "job.yaml", "--run-dir", "run",
             "--listen", "127.0.0.1:0", "--start-timeout", "0.2"});
  EXPECT_EQ(coordinator->Wait(kSoon), 1);
  EXPECT_THAT(coordinator->output(),
              HasSubstr("in vain for server 0, server 1, worker 0, worker 1, "
                        "the model"));
}

}  // namespace
}  // namespace tributary
