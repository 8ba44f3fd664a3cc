// SPDX-License-Identifier: Apache-2.0
// A run that loses processes ends with the same bits as a run without losses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::IsGone;

using RecoveryTest = FaultTest;

// ---- a worker, at every point of a step

class WorkerPointTest : public FaultTest,
                        public ::testing::WithParamInterface<const char*> {};

TEST_P(WorkerPointTest, ReplacementGoesOnAsIfNothingHadHappened) {
  std::string address;
  auto coordinator = Coordinate("run", &address);
  auto server0 = Start({"tributary-server", "--coordinator", address});
  auto server1 = Start({"tributary-server", "--coordinator", address});
  auto worker0 =
      Start({"tributary-worker", "--coordinator", address, "--index", "0"});
  const std::string point = absl::StrCat(GetParam(), ":20");
  SetFailpoints(point + ":kill");
  auto worker1 =
      Start({"tributary-worker", "--coordinator", address, "--index", "1"});
  EXPECT_EQ(worker1->Wait(kSoon), 128 + SIGKILL);
  auto replacement = Start({"tributary-worker", "--coordinator", address});
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (auto* member : {&server0, &server1, &worker0, &replacement}) {
    EXPECT_EQ((*member)->Wait(kSoon), 0) << (*member)->output();
  }
  EXPECT_TRUE(Fired(point));
  EXPECT_EQ(Summary("run")["lost"]["workers"], 1);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

INSTANTIATE_TEST_SUITE_P(
    Points, WorkerPointTest,
    ::testing::Values("worker-before-compute", "worker-computed",
                      "worker-mid-push", "worker-pushed", "worker-answered"),
    [](const auto& info) {
      std::string name = info.param;
      name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
      return name;
    });

// On a processor with other BLAS kernels, results are rounded differently, as
// on a GPU. So the contributions of a lost worker differ from those of its
// replacement, and the comparison of them must not end the job.
class OtherProcessorTest : public FaultTest {
 protected:
  // Ends with the loss of worker 1 when half of its gradients of step 20 are
  // pushed: some blocks have its contribution, the others wait for it.
  void TrainAndLoseWorker1(const std::vector<std::string>& of_worker0) {
    // With these layers some blocks are complete when half of the gradients are
    // pushed.
    EditJob("- linear: {in: 96, out: 1}",
            "- linear: {in: 96, out: 1024}\n    - linear: {in: 1024, out: 64}\n"
            "    - linear: {in: 64, out: 1}");
    EditJob("epochs: 40", "epochs: 4");
    EditJob("cluster:",
            "strategy: {parameter_server: {bucket_bytes: 131072}}\ncluster:");
    coordinator_ = Coordinate("run", &address_);
    for (int i = 0; i < 2; ++i) {
      members_.push_back(
          Start({"tributary-server", "--coordinator", address_}));
    }
    SetEnvironment(of_worker0);
    members_.push_back(StartWorker(0));
    SetEnvironment({});
    // Worker 1 sleeps at the failpoint until it is killed.
    SetFailpoints("worker-mid-push:20:delay=90000");
    auto worker1 = StartWorker(1);
    SetFailpoints("");
    ASSERT_TRUE(Eventually([&] { return Fired("worker-mid-push:20"); }));
    ASSERT_TRUE(Eventually([&] {
      const auto status =
          testing::RunProcess({testing::Program("tributary"), "status",
                               "--coordinator", address_, "--json"});
      return absl::StrContains(status.output, "waits for rank 1");
    }));
    worker1->Signal(SIGKILL);
  }
  std::unique_ptr<RunningProcess> StartWorker(int index) {
    return Start({"tributary-worker", "--coordinator", address_, "--index",
                  absl::StrCat(index)});
  }
  void ExpectGoodEnd() {
    EXPECT_EQ(coordinator_->Wait(kSoon), 0) << coordinator_->output();
    for (auto& member : members_) {
      EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
    }
    EXPECT_EQ(Summary("run")["lost"]["workers"], 1);
  }
  // Whether the process that continues with rank 1 reports different bits.
  bool Recomputed() const {
    return absl::StrContains(members_.back()->output(),
                             "rank 1 computes with other bits");
  }

  std::string address_;
  std::unique_ptr<RunningProcess> coordinator_;
  std::vector<std::unique_ptr<RunningProcess>> members_;
};

TEST_F(OtherProcessorTest, AReplacementGoesOn) {
  ASSERT_NO_FATAL_FAILURE(TrainAndLoseWorker1({}));
  SetEnvironment({"OPENBLAS_CORETYPE=Prescott"});
  members_.push_back(StartWorker(1));
  ExpectGoodEnd();
  SetEnvironment({});
  EXPECT_EQ(Recomputed(), Sha256("run") != Undisturbed());
  if (!Recomputed()) GTEST_SKIP() << "BLAS has one kind of kernels here";
}

TEST_F(OtherProcessorTest, TheWorkerThatTakesTheRankOverGoesOn) {
  EditJob("lease_seconds: 3", "lease_seconds: 2, on_worker_loss: shrink");
  ASSERT_NO_FATAL_FAILURE(TrainAndLoseWorker1({"OPENBLAS_CORETYPE=Prescott"}));
  ExpectGoodEnd();
  if (!Recomputed()) GTEST_SKIP() << "BLAS has one kind of kernels here";
}

// ---- a server, at every point of a push

class ServerPointTest : public FaultTest,
                        public ::testing::WithParamInterface<const char*> {};

TEST_P(ServerPointTest, EverybodyGoesBackAndTheBitsStay) {
  const std::string point = absl::StrCat(GetParam(), ":100");
  const std::vector<std::string> words = {"--set", "checkpoint.every_steps=10"};
  SetFailpoints(point + ":kill");
  auto train = Train("run", words);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_TRUE(Fired(point));
  EXPECT_EQ(Summary("run")["lost"]["servers"], 1);
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 1);
  SetFailpoints("");
  EXPECT_EQ(Sha256("run"), Undisturbed(words));
}

INSTANTIATE_TEST_SUITE_P(
    Points, ServerPointTest,
    ::testing::Values("server-received", "server-complete", "server-answer"),
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

class TrainKillTest : public FaultTest,
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
      EXPECT_TRUE(IsGone(process["pid"], kAtOnce)) << process;
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
                      Kill{"AllWorkersOfAShrinkingJob",
                           {"worker 0", "worker 1"},
                           {"--set", "cluster.on_worker_loss=shrink"},
                           2,
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
  const absl::Time killed = absl::Now();
  kill(PidOf("run", "worker 1"), SIGKILL);
  EXPECT_TRUE(train->WaitForOutput(": worker-1 was killed by signal 9", kSoon));
  TellSeconds("until_the_sentence", absl::Now() - killed);
  EXPECT_EQ(train->Wait(kSoon), 1);
  TellSeconds("until_the_end", absl::Now() - killed);
}

TEST_F(RecoveryTest, DaemonsOfAJobThatFailsOnLossAllEndWithTheSentence) {
  EditJob("lease_seconds: 3", "lease_seconds: 2, on_worker_loss: fail");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> members;
  for (const char* program :
       {"tributary-server", "tributary-server", "tributary-worker"}) {
    members.push_back(Start({program, "--coordinator", address}));
  }
  SetFailpoints("worker-pushed:200:kill");
  auto victim = Start({"tributary-worker", "--coordinator", address});
  EXPECT_EQ(victim->Wait(kSoon), 128 + SIGKILL);
  const absl::Time killed = absl::Now();
  EXPECT_TRUE(
      coordinator->WaitForOutput("was lost, last heard at step", kSoon));
  TellSeconds("until_the_sentence", absl::Now() - killed);
  EXPECT_EQ(coordinator->Wait(kSoon), 1);
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 1);
    EXPECT_THAT(member->output(), HasSubstr("was lost, last heard at step"));
  }
  TellSeconds("until_the_end", absl::Now() - killed);
  // The message names the last step that the worker reported.
  EXPECT_THAT(std::string(Summary("run")["message"]),
              ::testing::MatchesRegex("worker [01] \\(.*, pid [0-9]+\\) was "
                                      "lost, last heard at step [0-9]+: no "
                                      "heartbeat for [0-9.]+ s"));
}

// A host is drained: a waiting spare process takes the place long before the
// lease expires.
TEST_F(RecoveryTest, ADaemonThatGetsSigtermGivesItsPlaceToASpare) {
  EditJob("lease_seconds: 3", "lease_seconds: 50");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> members;
  for (const char* program :
       {"tributary-server", "tributary-server", "tributary-worker"}) {
    members.push_back(Start({program, "--coordinator", address}));
  }
  auto drained = Start({"tributary-worker", "--coordinator", address});
  ASSERT_TRUE(coordinator->WaitForOutput("epoch 3/40: test", kSoon));
  members.push_back(Start({"tributary-worker", "--coordinator", address}));
  drained->Signal(SIGTERM);
  EXPECT_EQ(drained->Wait(kSoon), 128 + SIGTERM);
  EXPECT_THAT(drained->output(),
              HasSubstr("SIGTERM: gives back the place of rank "));
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  EXPECT_THAT(coordinator->output(),
              HasSubstr("it gave its place back: it got SIGTERM"));
  const json summary = Summary("run");
  EXPECT_EQ(summary["lost"]["workers"], 1);
  EXPECT_EQ(summary["lost"]["rollbacks"], 0);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

// ---- the coordinator

TEST_F(RecoveryTest, ACoordinatorThatComesBackGoesOnWithTheJob) {
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> members;
  for (const char* program : {"tributary-server", "tributary-server",
                              "tributary-worker", "tributary-worker"}) {
    members.push_back(Start({program, "--coordinator", address}));
  }
  ASSERT_TRUE(coordinator->WaitForOutput("epoch 3/40: test", kSoon));
  ReplaceCoordinator("run", address, *coordinator);
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  const json summary = Summary("run");
  EXPECT_EQ(summary["steps"], 640);
  EXPECT_EQ(summary["lost"]["workers"], 0);
  EXPECT_EQ(summary["lost"]["rollbacks"], 0);
  EXPECT_EQ(Sha256("run"), Undisturbed());
  // metrics.jsonl contains every step once.
  std::istringstream lines(Read("run/metrics.jsonl"));
  int64_t step = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(json::parse(line)["step"], ++step);
  }
  EXPECT_EQ(step, 640);
}

// ---- everything, and resume

struct Resume {
  const char* label;
  const char* optimizer;
};

class ResumeTest : public FaultTest,
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
  ASSERT_NE(WaitForCheckpoint(Path("run/checkpoints")), "");
  train->Signal(SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL);
  for (pid_t pid : pids) EXPECT_TRUE(IsGone(pid, kAtOnce));

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
  const std::string newest = "run/checkpoints/step-000000000640";
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(Path(newest))) {
    const std::string name = entry.path().filename().string();
    if (name.find("shard-001") == 0) file = newest + "/" + name;
  }
  std::string bytes = Read(file);
  ASSERT_GT(bytes.size(), 1000u);
  bytes[700] ^= 4;
  Write(file, bytes);
  auto resumed =
      Start({"tributary", "train", "--resume", "run", "--run-dir", "resumed"});
  EXPECT_EQ(resumed->Wait(kSoon), 2);
  EXPECT_THAT(resumed->output(), HasSubstr(file + ": byte 0: "));
  EXPECT_THAT(resumed->output(),
              HasSubstr("the newest intact checkpoint before it is "
                        "run/checkpoints/step-000000000320: name it"));
  EXPECT_FALSE(std::filesystem::exists(Path("resumed")));
}

}  // namespace
}  // namespace tributary
