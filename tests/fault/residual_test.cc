// SPDX-License-Identifier: Apache-2.0
// Compressed gradients with error feedback: each rank's residual is part of the
// job's state, so a run ends with the same bits after any loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/checkpoint_fault_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Compressed {
  const char* label;
  const char* wire;
  const char* mesh = "";
  int workers = 2;
};

const std::vector<std::string>& EveryTen() {
  static const auto* const words =
      new std::vector<std::string>{"--set", "checkpoint.every_steps=10"};
  return *words;
}

class ResidualTest : public CheckpointFaultTest {
 protected:
  // Sets the wire format of gradients in the job file.
  void UseWire(const std::string& wire, const std::string& mesh = "") {
    EditJob("cluster:", absl::StrCat("strategy: {parameter_server: {", wire,
                                     "}", mesh, "}\ncluster:"));
    EditJob("epochs: 40", "epochs: 10");
    // Delayed gradients diverge at the rate of other tests.
    EditJob("learning_rate: 0.05", "learning_rate: 0.01");
  }
  // Returns the residual files of a checkpoint, sorted.
  std::vector<std::string> ResidualsIn(const std::string& folder) const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (absl::StartsWith(entry.path().filename().string(), "residual-")) {
        paths.push_back(entry.path().string());
      }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  // Trains until a checkpoint is complete, and kills the whole run.
  void KillAfterACheckpoint(const std::string& run) {
    auto train = Train(run, EveryTen());
    EXPECT_NE(WaitForCheckpoint(Path(run + "/checkpoints")), "");
    train->Signal(SIGKILL);
    EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL);
  }
  std::unique_ptr<RunningProcess> Resume(
      const std::string& from, const std::string& run,
      const std::vector<std::string>& words = {}) {
    std::vector<std::string> command = {"tributary", "train",     "--resume",
                                        from,        "--run-dir", run};
    command.insert(command.end(), words.begin(), words.end());
    return Start(command);
  }
};

class ResidualFormatTest : public ResidualTest,
                           public ::testing::WithParamInterface<Compressed> {
 protected:
  void SetUp() override {
    ResidualTest::SetUp();
    UseWire(GetParam().wire, GetParam().mesh);
    if (GetParam().workers != 2) {
      EditJob("workers: 2", absl::StrCat("workers: ", GetParam().workers));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Formats, ResidualFormatTest,
    ::testing::Values(Compressed{"Int8", "wire: int8"},
                      Compressed{"TopK", "wire: top_k, top_k_fraction: 0.05"},
                      Compressed{"OneBit", "wire: one_bit"},
                      Compressed{"TopKAndTensorRanks",
                                 "wire: top_k, top_k_fraction: 0.05",
                                 ", tensor_parallel: 2", 4}),
    [](const auto& info) { return info.param.label; });

// The worker dies when half of a step's gradients have been sent.
TEST_P(ResidualFormatTest, ALostWorkerAndALostServerLeaveTheBits) {
  SetFailpoints("worker-mid-push:70:kill,server-complete:140:kill");
  auto train = Train("run", EveryTen());
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_TRUE(Fired("worker-mid-push:70"));
  EXPECT_TRUE(Fired("server-complete:140"));
  SetFailpoints("");
  EXPECT_EQ(Summary("run")["lost"]["workers"], 1);
  EXPECT_EQ(Summary("run")["lost"]["servers"], 1);
  EXPECT_GE(Summary("run")["lost"]["rollbacks"], 1);
  EXPECT_THAT(train->output(), HasSubstr("everybody goes back to step "));
  EXPECT_EQ(Sha256("run"), Undisturbed());
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
}

TEST_P(ResidualFormatTest, AKilledRunIsResumedOnAnotherNumberOfServers) {
  KillAfterACheckpoint("run");
  auto resumed = Resume("run", "resumed", {"--servers", "3"});
  EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_GE(Summary("resumed")["start_step"], 10);
  EXPECT_THAT(resumed->output(), Not(HasSubstr("a residual of zero")));
  EXPECT_EQ(Sha256("resumed"), Undisturbed());
}

class TopKTest : public ResidualTest {
 protected:
  void SetUp() override {
    ResidualTest::SetUp();
    UseWire("wire: top_k, top_k_fraction: 0.05");
  }
};

TEST_F(TopKTest, WithoutACheckpointEverybodyStartsOver) {
  SetFailpoints("worker-pushed:50:kill");
  auto train = Train("run");
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_TRUE(Fired("worker-pushed:50"));
  SetFailpoints("");
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 1);
  EXPECT_THAT(train->output(), HasSubstr("there is no checkpoint: everybody "
                                         "starts over"));
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

// Without this, the other tests would pass whatever residual is restored.
TEST_F(TopKTest, TheBitsDependOnTheResidual) {
  const std::string bits = Undisturbed();
  EditJob("top_k_fraction: 0.05",
          "top_k_fraction: 0.05, error_feedback: false");
  auto train = Train("without");
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_NE(Sha256("without"), bits);
}

class RankPointTest : public TopKTest,
                      public ::testing::WithParamInterface<const char*> {};

TEST_P(RankPointTest, ARankThatIsKilledWhileItWritesCostsNothing) {
  Write("job.yaml", Read("job.yaml") + "checkpoint: {every_steps: 10}\n");
  const std::string point = absl::StrCat(GetParam(), ":3");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> members;
  for (const char* program :
       {"tributary-server", "tributary-server", "tributary-worker"}) {
    members.push_back(Start({program, "--coordinator", address}));
  }
  SetFailpoints(point + ":kill");
  auto victim = Start({"tributary-worker", "--coordinator", address});
  SetFailpoints("");
  EXPECT_EQ(victim->Wait(kSoon), 128 + SIGKILL);
  members.push_back(Start({"tributary-worker", "--coordinator", address}));
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (auto& member : members) EXPECT_EQ(member->Wait(kSoon), 0);
  EXPECT_EQ(Summary("run")["lost"]["workers"], 1);
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 1);
  EXPECT_EQ(Sha256("run"), Undisturbed());
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
  EXPECT_EQ(Folders("run/checkpoints", true).size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Points, RankPointTest,
                         ::testing::Values("shard-file-middle",
                                           "shard-file-before-rename",
                                           "shard-file-after-rename"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_F(TopKTest, ADamagedResidualTakesEverybodyToTheCheckpointBefore) {
  auto train = TrainUntilTwoAreWhole(/*workers_write=*/true);
  const auto whole = Folders("run/checkpoints", true);
  ASSERT_GE(whole.size(), 2u) << train->output();
  const std::string newest = Path("run/checkpoints/" + whole.back());
  const std::vector<std::string> residuals = ResidualsIn(newest);
  ASSERT_EQ(residuals.size(), 2u);
  fs::resize_file(residuals[1], fs::file_size(residuals[1]) / 2);
  EXPECT_NE(Verify("run").exit_code, 0);
  kill(PidOf("run", "server 1"), SIGKILL);
  for (pid_t pid : workers_) kill(pid, SIGCONT);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("cannot be read, rank 1: "));
  EXPECT_THAT(train->output(),
              HasSubstr(absl::StrCat("/", whole[whole.size() - 2])));
  EXPECT_EQ(Sha256("run"), Undisturbed({"--set", "training.epochs=200"}));
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
}

TEST_F(TopKTest, ADamagedResidualIsRefusedBeforeARunIsResumed) {
  KillAfterACheckpoint("run");
  const auto whole = Folders("run/checkpoints", true);
  ASSERT_FALSE(whole.empty());
  const std::vector<std::string> residuals =
      ResidualsIn(Path("run/checkpoints/" + whole.back()));
  ASSERT_EQ(residuals.size(), 2u);
  std::fstream stream(residuals[0],
                      std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-100, std::ios::end);
  stream.put(static_cast<char>(0x5a));
  stream.close();
  auto resumed = Resume("run", "resumed");
  EXPECT_EQ(resumed->Wait(kSoon), 2);
  EXPECT_THAT(resumed->output(), HasSubstr("residual-000-of-002-"));
}

// Both runs begin with residuals of zero, and a later loss changes nothing.
TEST_F(TopKTest, ARunThatBeginsWithoutResidualsSaysSoAndIsAsExact) {
  EditJob("wire: top_k, top_k_fraction: 0.05", "wire: float32");
  KillAfterACheckpoint("run");
  const std::vector<std::string> words = {
      "--set", "strategy.parameter_server.wire=top_k", "--set",
      "checkpoint.every_steps=1000"};
  auto first = Resume("run", "first", words);
  EXPECT_EQ(first->Wait(kSoon), 0) << first->output();
  EXPECT_THAT(first->output(), HasSubstr("every rank begins with a residual of "
                                         "zero: the checkpoint has none"));
  SetFailpoints("worker-mid-push:20:kill");
  auto second = Resume("run", "second", words);
  EXPECT_EQ(second->Wait(kSoon), 0) << second->output();
  EXPECT_TRUE(Fired("worker-mid-push:20"));
  SetFailpoints("");
  EXPECT_EQ(Summary("second")["lost"]["rollbacks"], 1);
  EXPECT_EQ(Sha256("second"), Sha256("first"));
}

TEST_F(TopKTest, OtherRanksBeginWithZerosAndAreToldSo) {
  KillAfterACheckpoint("run");
  // The global batch stays as before; the rows so far are a multiple of it.
  auto resumed =
      Resume("run", "resumed",
             {"--workers", "3", "--set", "data.global_batch_size=40"});
  EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_THAT(resumed->output(),
              HasSubstr("every rank begins with a residual of zero: the "
                        "checkpoint has those of 2 ranks, the job has 3"));
}

// The coordinator is killed, and a worker is killed before the next coordinator
// starts.
TEST_F(TopKTest, ACoordinatorThatTakesOverGoesBackForALostWorker) {
  Write("job.yaml", Read("job.yaml") + "checkpoint: {every_steps: 10}\n");
  EditJob("epochs: 10", "epochs: 40");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> members;
  for (const char* program : {"tributary-server", "tributary-worker"}) {
    for (int i = 0; i < 2; ++i) {
      members.push_back(Start({program, "--coordinator", address}));
    }
  }
  ASSERT_NE(WaitForCheckpoint(Path("run/checkpoints")), "");
  coordinator->Signal(SIGKILL);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGKILL);
  members.back()->Signal(SIGKILL);
  EXPECT_EQ(members.back()->Wait(kSoon), 128 + SIGKILL);
  members.back() = Start({"tributary-worker", "--coordinator", address});
  auto again = Start({"tributary-coordinator", "--job", "job.yaml", "--run-dir",
                      "run", "--listen", address});
  EXPECT_EQ(again->Wait(kSoon), 0) << again->output();
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  EXPECT_EQ(Summary("run")["lost"]["workers"], 1);
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 1);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

}  // namespace
}  // namespace tributary
