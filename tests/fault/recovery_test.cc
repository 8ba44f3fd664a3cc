// A run that loses processes ends with the bits of a run that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::IsGone;
using testing::RunningProcess;

constexpr absl::Duration kSoon = absl::Seconds(100);

// Dropout and accumulation are on; 40 epochs of 16 steps, the last one short.
constexpr char kJob[] = R"(name: fault
model:
  sequential:
    - linear: {in: 16, out: 96}
    - tanh
    - dropout: {p: 0.1}
    - linear: {in: 96, out: 1}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 1250}}
  test: {synthetic: {kind: mlp_teacher, rows: 200, first_row: 1000000}}
  batch_size: 20
training:
  epochs: 40
  loss: mse
  gradient_accumulation: 2
  optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9}}
cluster: {servers: 2, workers: 2, lease_seconds: 3}
)";

class RecoveryTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override { Write("job.yaml", kJob); }

  std::unique_ptr<RunningProcess> Start(std::vector<std::string> command) {
    command[0] = std::string(TRIBUTARY_BINARY_DIR) + "/" + command[0];
    return RunningProcess::Start({.command = command, .folder = folder()});
  }
  std::unique_ptr<RunningProcess> Train(
      const std::string& run, const std::vector<std::string>& words = {}) {
    std::vector<std::string> command = {"tributary", "train", "job.yaml",
                                        "--run-dir", run};
    command.insert(command.end(), words.begin(), words.end());
    return Start(command);
  }
  json Summary(const std::string& run) {
    return json::parse(Read(run + "/summary.json"));
  }
  std::string Sha256(const std::string& run) {
    return Summary(run)["weights_sha256"];
  }
  // What the job comes to when nothing happens.
  std::string Undisturbed(const std::vector<std::string>& words = {}) {
    auto train = Train("undisturbed", words);
    EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
    return Sha256("undisturbed");
  }
  // From the coordinator's log: "worker 1 is HOST (pid N)", the last such.
  pid_t PidOf(const std::string& run, const std::string& name) {
    const std::string log = Read(run + "/logs/coordinator.log");
    const std::regex pattern(name + " is .*pid ([0-9]+)");
    pid_t pid = 0;
    for (std::sregex_iterator it(log.begin(), log.end(), pattern), end;
         it != end; ++it) {
      pid = std::stoi((*it)[1]);
    }
    return pid;
  }
  void WaitForCheckpoint(const std::string& run) {
    namespace fs = std::filesystem;
    const absl::Time deadline = absl::Now() + kSoon;
    while (absl::Now() < deadline) {
      std::error_code error;
      for (const auto& entry :
           fs::directory_iterator(Path(run + "/checkpoints"), error)) {
        if (fs::exists(entry.path() / "manifest.ckpt", error)) return;
      }
      absl::SleepFor(absl::Milliseconds(2));
    }
    FAIL() << "no checkpoint in " << run;
  }
  static std::string Address(RunningProcess& process) {
    EXPECT_TRUE(process.WaitForOutput("waits for", kSoon));
    std::smatch match;
    EXPECT_TRUE(
        std::regex_search(process.output(), match,
                          std::regex("coordinator (\\S+:[0-9]+) waits for")));
    return match[1];
  }
};

// ---- a worker, at every point of a step

class WorkerPointTest : public RecoveryTest,
                        public ::testing::WithParamInterface<const char*> {};

TEST_P(WorkerPointTest, ReplacementGoesOnAsIfNothingHadHappened) {
  auto coordinator = Start({"tributary-coordinator", "--job", "job.yaml",
                            "--run-dir", "run", "--listen", "127.0.0.1:0"});
  const std::string address = Address(*coordinator);
  auto server0 = Start({"tributary-server", "--coordinator", address});
  auto server1 = Start({"tributary-server", "--coordinator", address});
  auto worker0 =
      Start({"tributary-worker", "--coordinator", address, "--index", "0"});
  auto worker1 = Start({"tributary-worker", "--coordinator", address, "--index",
                        "1", "--die-at", absl::StrCat("20:", GetParam())});
  EXPECT_EQ(worker1->Wait(kSoon), 128 + SIGKILL);
  auto replacement = Start({"tributary-worker", "--coordinator", address});
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (auto* member : {&server0, &server1, &worker0, &replacement}) {
    EXPECT_EQ((*member)->Wait(kSoon), 0) << (*member)->output();
  }
  EXPECT_EQ(Summary("run")["lost"]["workers"], 1);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

INSTANTIATE_TEST_SUITE_P(
    Points, WorkerPointTest,
    ::testing::Values("before-compute", "mid-push", "pushed", "answered"),
    [](const auto& info) {
      std::string name = info.param;
      name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
      return name;
    });

// ---- processes that `tributary train` starts

struct Kill {
  const char* label;
  std::vector<std::string> victims;
  std::vector<std::string> words;
  int workers_lost;
  int servers_lost;
};

class TrainKillTest : public RecoveryTest,
                      public ::testing::WithParamInterface<Kill> {};

TEST_P(TrainKillTest, RunEndsWithTheUndisturbedWeights) {
  const Kill& kill = GetParam();
  auto train = Train("run", kill.words);
  ASSERT_TRUE(train->WaitForOutput("epoch 3/40: test", kSoon));
  for (const std::string& victim : kill.victims) {
    const pid_t pid = PidOf("run", victim);
    ASSERT_GT(pid, 0) << victim;
    ::kill(pid, SIGKILL);
  }
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  const json summary = Summary("run");
  const json& lost = summary.at("lost");
  EXPECT_EQ(lost["workers"], kill.workers_lost);
  EXPECT_EQ(lost["servers"], kill.servers_lost);
  EXPECT_EQ(Sha256("run"), Undisturbed());
  for (const json& process : summary.at("processes")) {
    if (process.contains("pid")) {
      EXPECT_TRUE(IsGone(process["pid"], kSoon)) << process;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Victims, TrainKillTest,
    ::testing::Values(Kill{"Worker", {"worker 1"}, {}, 1, 0},
                      Kill{"BothWorkers", {"worker 0", "worker 1"}, {}, 2, 0},
                      Kill{"WorkerOfAShrinkingJob",
                           {"worker 0"},
                           {"--set", "cluster.on_worker_loss=shrink"},
                           1,
                           0},
                      Kill{"Server",
                           {"server 1"},
                           {"--set", "checkpoint.every_steps=10"},
                           0,
                           1},
                      Kill{"ServerWithoutACheckpoint", {"server 0"}, {}, 0, 1},
                      Kill{"BothServersAndAWorker",
                           {"server 0", "worker 1", "server 1"},
                           {"--set", "checkpoint.every_steps=10"},
                           1,
                           2}),
    [](const auto& info) { return info.param.label; });

TEST_F(RecoveryTest, AJobThatFailsOnLossNamesTheWorker) {
  auto train = Train("run", {"--set", "cluster.on_worker_loss=fail"});
  ASSERT_TRUE(train->WaitForOutput("epoch 3/40: test", kSoon));
  kill(PidOf("run", "worker 1"), SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 1);
  EXPECT_THAT(train->output(), HasSubstr("worker-1 was killed by signal 9"));
}

// ---- the coordinator

TEST_F(RecoveryTest, ACoordinatorThatComesBackGoesOnWithTheJob) {
  std::vector<std::string> command = {"tributary-coordinator",
                                      "--job",
                                      "job.yaml",
                                      "--run-dir",
                                      "run",
                                      "--listen",
                                      "127.0.0.1:0"};
  auto coordinator = Start(command);
  const std::string address = Address(*coordinator);
  std::vector<std::unique_ptr<RunningProcess>> members;
  for (const char* program : {"tributary-server", "tributary-server",
                              "tributary-worker", "tributary-worker"}) {
    members.push_back(Start({program, "--coordinator", address}));
  }
  ASSERT_TRUE(coordinator->WaitForOutput("epoch 3/40: test", kSoon));
  coordinator->Signal(SIGKILL);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGKILL);
  command.back() = address;
  auto again = Start(command);
  EXPECT_EQ(again->Wait(kSoon), 0) << again->output();
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  const json summary = Summary("run");
  EXPECT_EQ(summary["steps"], 640);
  EXPECT_EQ(summary["lost"]["workers"], 0);
  EXPECT_EQ(summary["lost"]["rollbacks"], 0);
  EXPECT_EQ(Sha256("run"), Undisturbed());
  // Every step stands in the metrics once.
  std::istringstream lines(Read("run/metrics.jsonl"));
  int64_t step = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(json::parse(line)["step"], ++step);
  }
  EXPECT_EQ(step, 640);
}

// As when a machine, or all containers, stop and are started again.
TEST_F(RecoveryTest, EverythingThatStopsGoesOnWhenItIsStartedAgain) {
  std::vector<std::string> command = {"tributary-coordinator",
                                      "--job",
                                      "job.yaml",
                                      "--run-dir",
                                      "run",
                                      "--listen",
                                      "127.0.0.1:0",
                                      "--set",
                                      "checkpoint.every_steps=50"};
  auto coordinator = Start(command);
  std::string address = Address(*coordinator);
  command[6] = address;
  const auto start_members = [&] {
    std::vector<std::unique_ptr<RunningProcess>> members;
    for (const char* program : {"tributary-server", "tributary-server",
                                "tributary-worker", "tributary-worker"}) {
      members.push_back(Start({program, "--coordinator", address}));
    }
    return members;
  };
  auto members = start_members();
  ASSERT_TRUE(coordinator->WaitForOutput("epoch 5/40: test", kSoon));
  WaitForCheckpoint("run");
  coordinator->Signal(SIGKILL);
  coordinator->Wait(kSoon);
  for (auto& member : members) {
    member->Signal(SIGTERM);
    member->Wait(kSoon);
  }
  coordinator = Start(command);
  members = start_members();
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  const json summary = Summary("run");
  EXPECT_EQ(summary["steps"], 640);
  EXPECT_EQ(summary["lost"]["rollbacks"], 1);
  EXPECT_EQ(summary["weights_sha256"],
            Undisturbed({"--set", "checkpoint.every_steps=50"}));
}

// ---- everything, and resume

struct Resume {
  const char* label;
  const char* optimizer;
};

class ResumeTest : public RecoveryTest,
                   public ::testing::WithParamInterface<Resume> {};

TEST_P(ResumeTest, OnAnotherNumberOfServersTheBitsStay) {
  const std::vector<std::string> words = {
      "--set", absl::StrCat("training.optimizer=", GetParam().optimizer),
      "--set", "checkpoint.every_steps=10"};
  auto train = Train("run", words);
  ASSERT_TRUE(train->WaitForOutput("epoch 3/40: test", kSoon));
  std::vector<pid_t> pids;
  for (const char* name : {"server 0", "server 1", "worker 0", "worker 1"}) {
    pids.push_back(PidOf("run", name));
  }
  WaitForCheckpoint("run");
  train->Signal(SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL);
  for (pid_t pid : pids) EXPECT_TRUE(IsGone(pid, kSoon));

  auto resumed = Start({"tributary", "train", "--resume", "run", "--servers",
                        "3", "--run-dir", "resumed"});
  EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_GE(Summary("resumed")["start_step"], 10);
  EXPECT_EQ(Summary("resumed")["start_step"].get<int>() % 10, 0);
  EXPECT_EQ(Sha256("resumed"), Undisturbed(words));
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ResumeTest,
    ::testing::Values(Resume{"Momentum",
                             "{sgd: {learning_rate: 0.05, momentum: 0.9}}"},
                      Resume{"Adam", "{adam: {learning_rate: 0.003}}"},
                      Resume{"Adagrad", "{adagrad: {learning_rate: 0.05}}"}),
    [](const auto& info) { return info.param.label; });

TEST_F(RecoveryTest, ADamagedCheckpointIsRefusedBeforeAnythingBegins) {
  auto train = Train("run", {"--set", "checkpoint.every_steps=320"});
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  const std::string file =
      "run/checkpoints/step-000000000640/shard-001-of-002.ckpt";
  std::string bytes = Read(file);
  ASSERT_GT(bytes.size(), 1000u);
  bytes[700] ^= 4;
  Write(file, bytes);
  auto resumed =
      Start({"tributary", "train", "--resume", "run", "--run-dir", "resumed"});
  EXPECT_EQ(resumed->Wait(kSoon), 2);
  EXPECT_THAT(resumed->output(), HasSubstr("shard-001-of-002.ckpt"));
  EXPECT_FALSE(std::filesystem::exists(Path("resumed")));
}

}  // namespace
}  // namespace tributary
