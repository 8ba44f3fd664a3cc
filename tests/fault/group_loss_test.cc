// SPDX-License-Identifier: Apache-2.0
// Loss of ranks that compute in groups: all-reduce, tensor ranks, stages of a
// pipeline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/fault/fault_test.h"

namespace tributary {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::IsGone;

struct Group {
  const char* label;
  const char* strategy;
  int servers = 0;
  int workers = 3;
};

class GroupLossTest : public FaultTest,
                      public ::testing::WithParamInterface<Group> {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    fewest_ports_ = 1 + GetParam().servers;
    EditJob("epochs: 40", "epochs: 20");
    EditJob("servers: 2, workers: 2",
            absl::StrCat("servers: ", GetParam().servers,
                         ", workers: ", GetParam().workers));
    Write("job.yaml", absl::StrCat(Read("job.yaml"), "strategy: {",
                                   GetParam().strategy, "}\n"));
  }
};

INSTANTIATE_TEST_SUITE_P(
    Strategies, GroupLossTest,
    ::testing::Values(
        Group{"Replicated", "all_reduce: {}"},
        Group{"Sharded", "all_reduce: {sharded: true}"},
        Group{"TensorRanksAndServers", "tensor_parallel: 2", 2, 4},
        Group{"ReplicasOfTensorRanks", "all_reduce: {}, tensor_parallel: 2", 0,
              4},
        Group{"StagesAndServers",
              "pipeline_parallel: {stages: 2, schedule: gpipe}", 2, 4},
        Group{"ReplicasOfStages",
              "all_reduce: {}, pipeline_parallel: {stages: 2}", 0, 4}),
    [](const auto& info) { return info.param.label; });

// Strategies with whole models. A checkpoint of one fits all of them; a
// checkpoint of slices only fits the same partition.
class WholeModelsTest : public GroupLossTest {};
INSTANTIATE_TEST_SUITE_P(
    Strategies, WholeModelsTest,
    ::testing::Values(Group{"Replicated", "all_reduce: {}"},
                      Group{"Sharded", "all_reduce: {sharded: true}"}),
    [](const auto& info) { return info.param.label; });

class DataParallelTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    fewest_ports_ = 1;
    EditJob("workers: 2", "workers: 3");
    Write("job.yaml",
          absl::StrCat(Read("job.yaml"), "strategy: data_parallel\n"));
  }
};

// The rank dies when half of the step's gradients have been sent.
TEST_P(GroupLossTest, ARankKilledInMidStepEndsAllOthersByName) {
  EditJob("lease_seconds: 3", "lease_seconds: 2, on_worker_loss: fail");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> servers, others;
  for (int i = 0; i < GetParam().servers; ++i) {
    servers.push_back(Start({"tributary-server", "--coordinator", address}));
  }
  for (int rank = 0; rank < GetParam().workers; ++rank) {
    if (rank == 1) continue;
    others.push_back(Start({"tributary-worker", "--coordinator", address,
                            "--index", absl::StrCat(rank)}));
  }
  SetFailpoints("worker-mid-push:200:kill");
  auto victim =
      Start({"tributary-worker", "--coordinator", address, "--index", "1"});
  EXPECT_EQ(victim->Wait(kSoon), 128 + SIGKILL);
  const absl::Time killed = absl::Now();
  for (auto& other : others) {
    EXPECT_EQ(other->Wait(kSoon), 1);
    EXPECT_THAT(other->output(),
                AnyOf(HasSubstr("rank 1"), HasSubstr("worker 1 (")));
  }
  TellSeconds("until_every_rank_has_ended", absl::Now() - killed);
  EXPECT_EQ(coordinator->Wait(kSoon), 1);
  TellSeconds("until_the_end", absl::Now() - killed);
  EXPECT_THAT(std::string(Summary("run")["message"]), HasSubstr("worker 1 ("));
}

TEST_P(GroupLossTest, ACoordinatorThatComesBackGoesOnWithTheJob) {
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> members;
  for (int i = 0; i < GetParam().servers + GetParam().workers; ++i) {
    members.push_back(
        Start({i < GetParam().servers ? "tributary-server" : "tributary-worker",
               "--coordinator", address}));
  }
  ASSERT_TRUE(coordinator->WaitForOutput("epoch 3/20: test", kSoon));
  ReplaceCoordinator("run", address, *coordinator);
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  EXPECT_EQ(Summary("run")["lost"]["workers"], 0);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

// Without a checkpoint all ranks start over; with one they continue from it.
TEST_P(GroupLossTest, ALostRankIsReplacedAndTheBitsStay) {
  for (const std::string every : {"0", "40"}) {
    const std::string run = absl::StrCat("run", every);
    std::vector<std::string> words;
    if (every != "0") words = {"--set", "checkpoint.every_steps=" + every};
    auto train = Train(run, words);
    ASSERT_TRUE(train->WaitForOutput("epoch 5/20: test", kSoon));
    if (every != "0") {
      ASSERT_NE(WaitForCheckpoint(Path(run + "/checkpoints")), "");
    }
    kill(PidOf(run, "worker 1"), SIGKILL);
    EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
    EXPECT_EQ(Summary(run)["lost"]["workers"], 1);
    EXPECT_EQ(Summary(run)["lost"]["rollbacks"], 1);
  }
  EXPECT_EQ(Sha256("run0"), Undisturbed());
  EXPECT_EQ(Sha256("run40"), Sha256("run0"));
}

// Every strategy can restore a checkpoint of every other strategy.
TEST_P(WholeModelsTest, ServersGoOnWithWhatRanksHaveWrittenAndRanksWithTheirs) {
  auto train = Train("run", {"--set", "checkpoint.every_steps=40"});
  ASSERT_TRUE(train->WaitForOutput("epoch 3/20: test", kSoon));
  ASSERT_NE(WaitForCheckpoint(Path("run/checkpoints")), "");
  train->Signal(SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL);

  auto served = Start({"tributary", "train", "--resume", "run", "--set",
                       "strategy=parameter_server", "--servers", "2",
                       "--run-dir", "served"});
  EXPECT_EQ(served->Wait(kSoon), 0) << served->output();
  auto back =
      Start({"tributary", "train", "--resume", "run", "--run-dir", "back"});
  EXPECT_EQ(back->Wait(kSoon), 0) << back->output();
  EXPECT_GE(Summary("served")["start_step"], 40);
  EXPECT_EQ(Sha256("served"), Sha256("back"));
}

TEST_P(GroupLossTest, AnInterruptStopsAllRanksAtOneStepAndSavesTheWeights) {
  auto train = Train("run", {"--set", "training.epochs=100000"});
  ASSERT_TRUE(train->WaitForOutput("epoch 2/100000: test", kSoon));
  train->Signal(SIGINT);
  EXPECT_EQ(train->Wait(kSoon), 130) << train->output();
  const int64_t steps = Summary("run")["steps"];
  EditJob("epochs: 20", absl::StrCat("steps: ", steps));
  auto same = Train("same");
  EXPECT_EQ(same->Wait(kSoon), 0) << same->output();
  EXPECT_EQ(Sha256("run"), Sha256("same"));
}

// All ranks are threads of one process.
TEST_F(DataParallelTest, AProcessThatIsKilledIsReplacedAndTheBitsStay) {
  auto train = Train("run", {"--set", "checkpoint.every_steps=40"});
  ASSERT_TRUE(train->WaitForOutput("epoch 5/40: test", kSoon));
  ASSERT_NE(WaitForCheckpoint(Path("run/checkpoints")), "");
  const pid_t process = PidOf("run", "worker 0");
  EXPECT_EQ(PidOf("run", "worker 2"), process);
  kill(process, SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_NE(PidOf("run", "worker 2"), process);
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 1);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

}  // namespace
}  // namespace tributary
