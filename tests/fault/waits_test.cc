// SPDX-License-Identifier: Apache-2.0
// Waits, losses and limits that used to end a job that could continue, or that
// ended it without naming the cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/paths.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using Processes = std::vector<std::unique_ptr<testing::RunningProcess>>;

class WaitsTest : public FaultTest {
 protected:
  // Start daemons of the job at address_; workers register for their ranks.
  void StartServers(int count, Processes* processes) {
    for (int i = 0; i < count; ++i) {
      processes->push_back(
          Start({"tributary-server", "--coordinator", address_}));
    }
  }
  std::unique_ptr<RunningProcess> StartWorker(
      int rank, const std::vector<std::string>& words = {}) {
    std::vector<std::string> command = {"tributary-worker", "--coordinator",
                                        address_, "--index",
                                        absl::StrCat(rank)};
    command.insert(command.end(), words.begin(), words.end());
    return Start(command);
  }
  void ExpectSuccess(const Processes& processes) {
    for (const auto& process : processes) {
      EXPECT_EQ(process->Wait(kSoon), 0) << process->output();
    }
  }

  std::string address_;
};

// A job of ranks without servers, in which one rank is disturbed.
class GroupWaitsTest : public WaitsTest {
 protected:
  void SetUp() override {
    WaitsTest::SetUp();
    fewest_ports_ = 1;
    EditJob("epochs: 40", "epochs: 20");
    EditJob("servers: 2, workers: 2", "servers: 0, workers: 3");
    Write("job.yaml", Read("job.yaml") + "strategy: {all_reduce: {}}\n");
  }
};

// Rank 0 finishes 40 evaluations before the slow worker's first.
TEST_F(WaitsTest, AWorkerManyEvaluationsBehindEndsNothing) {
  Write("job.yaml",
        Read("job.yaml") + "strategy: {parameter_server: {sync: async}}\n");
  auto coordinator = Coordinate("run", &address_);
  Processes members;
  StartServers(2, &members);
  members.push_back(StartWorker(0));
  members.push_back(StartWorker(1, {"--slow-down", "50"}));
  EXPECT_EQ(coordinator->Wait(2 * kSoon), 0) << coordinator->output();
  ExpectSuccess(members);
  EXPECT_THAT(coordinator->output(),
              HasSubstr("is given up: rank 1 has not reported"));
  EXPECT_GT(Summary("run")["evaluations"].size(), 0u);
}

// The other ranks notice the broken connection at once; the coordinator notices
// the loss when the lease expires.
TEST_F(GroupWaitsTest, RanksWaitForAReplacementAsLongAsTheLeaseLasts) {
  EditJob("lease_seconds: 3", "lease_seconds: 20");
  auto coordinator = Coordinate("run", &address_);
  Processes members;
  members.push_back(StartWorker(0));
  members.push_back(StartWorker(2));
  SetFailpoints("worker-mid-push:100:kill");
  auto victim = StartWorker(1);
  EXPECT_EQ(victim->Wait(kSoon), 128 + SIGKILL);
  members.push_back(StartWorker(1));
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  ExpectSuccess(members);
  EXPECT_TRUE(Fired("worker-mid-push:100"));
  EXPECT_EQ(Summary("run")["lost"]["workers"], 1);
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 1);
  SetFailpoints("");
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

TEST_F(GroupWaitsTest, ALossWhileRanksConnectAgainLeadsToTheNextPlan) {
  auto coordinator = Coordinate("run", &address_);
  Processes members;
  members.push_back(StartWorker(0));
  members.push_back(StartWorker(2));
  SetFailpoints("worker-mid-push:100:kill");
  EXPECT_EQ(StartWorker(1)->Wait(kSoon), 128 + SIGKILL);
  SetFailpoints("worker-group-connects:1:kill");
  EXPECT_EQ(StartWorker(1)->Wait(kSoon), 128 + SIGKILL);
  SetFailpoints("");
  members.push_back(StartWorker(1));
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  ExpectSuccess(members);
  EXPECT_TRUE(Fired("worker-group-connects:1"));
  EXPECT_EQ(Summary("run")["lost"]["workers"], 2);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

TEST_F(GroupWaitsTest, AConnectionThatIsResetCostsARollbackAndNoRank) {
  SetFailpoints("worker-group-reset:300:error");
  auto train = Train("run", {"--set", "checkpoint.every_steps=20"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_TRUE(Fired("worker-group-reset:300"));
  EXPECT_THAT(train->output(), HasSubstr("cannot go on with the other ranks"));
  EXPECT_EQ(Summary("run")["lost"]["workers"], 0);
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 1);
  SetFailpoints("");
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

TEST_F(WaitsTest, ARankThatNobodyTakesEndsTheJobByName) {
  EditJob("lease_seconds: 3", "lease_seconds: 2");
  Write("job.yaml",
        Read("job.yaml") +
            "strategy: {parameter_server: {sync_timeout_seconds: 4}}\n");
  auto coordinator = Coordinate("run", &address_);
  Processes members;
  StartServers(2, &members);
  members.push_back(StartWorker(0));
  SetFailpoints("worker-pushed:20:kill");
  EXPECT_EQ(StartWorker(1)->Wait(kSoon), 128 + SIGKILL);
  EXPECT_EQ(coordinator->Wait(kSoon), 1);
  for (const auto& member : members) EXPECT_EQ(member->Wait(kSoon), 1);
  EXPECT_TRUE(Fired("worker-pushed:20"));
  EXPECT_THAT(
      std::string(Summary("run")["message"]),
      MatchesRegex("worker 1 .* was lost, last heard at step [0-9]+, and "
                   "nobody has taken its place for .* s"));
}

class FirstSecondTest : public WaitsTest,
                        public ::testing::WithParamInterface<const char*> {};

// Before there is a plan, a lost process has no state that could be lost.
TEST_P(FirstSecondTest, AProcessKilledBeforeItHasAPlaceIsReplaced) {
  const std::string point = absl::StrCat(GetParam(), "-started:1");
  SetFailpoints(point + ":kill");
  auto train = Train("run");
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_TRUE(Fired(point));
  SetFailpoints("");
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

INSTANTIATE_TEST_SUITE_P(Roles, FirstSecondTest,
                         ::testing::Values("server", "worker"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

TEST_F(WaitsTest, OneOfAThousandWaitsUntilTheCoordinatorGivesUp) {
  fewest_ports_ = 1;
  auto coordinator =
      Coordinate("run", &address_,
                 {"--set", "cluster.workers=1000", "--start-timeout", "5"});
  auto worker = StartWorker(0);
  EXPECT_EQ(coordinator->Wait(kSoon), 1);
  EXPECT_EQ(worker->Wait(kSoon), 1);
  EXPECT_THAT(coordinator->output(), HasSubstr("s in vain for server 0, "));
  EXPECT_THAT(worker->output(), HasSubstr("s in vain for server 0, "));
  EXPECT_THAT(worker->output(), HasSubstr("worker 8 and 991 more"));
}

// `train` checks the memory before it starts anything; a daemon checks it when
// it knows the model.
TEST_F(WaitsTest, ADaemonWithoutRoomForTheModelEndsTheJobByName) {
  fewest_ports_ = 1;
  std::string layers = "    - linear: {in: 16, out: 65536}\n";
  for (int i = 0; i < 200; ++i) {
    layers += "    - linear: {in: 65536, out: 65536}\n";
  }
  EditJob("    - linear: {in: 16, out: 96}\n", layers);
  EditJob("{in: 96, out: 1}", "{in: 65536, out: 1}");
  auto coordinator = Coordinate("run", &address_);
  auto worker = StartWorker(1);
  EXPECT_EQ(coordinator->Wait(kSoon), 1);
  EXPECT_EQ(worker->Wait(kSoon), 1);
  EXPECT_THAT(std::string(Summary("run")["message"]),
              HasSubstr("worker 1 needs at least 6.3 TiB of memory for weights "
                        "and gradients, but this machine has "));
  auto train = Train("together");
  EXPECT_EQ(train->Wait(kSoon), 2);
  EXPECT_THAT(train->output(), HasSubstr("the job needs at least "));
  EXPECT_THAT(train->output(), HasSubstr(", but this machine has "));
  EXPECT_FALSE(std::filesystem::exists(Path("together")));
}

TEST_F(WaitsTest, ALimitThatIsTooLowIsNamedBeforeAnythingStarts) {
  fewest_ports_ = 0;
  const std::string train =
      testing::Program("tributary") + " train job.yaml --run-dir run";
  for (const char* limit : {"ulimit -n 16", "ulimit -v 600000"}) {
    auto limited = RunningProcess::Start(
        {.command = {"/bin/sh", "-c", absl::StrCat(limit, "; exec ", train)},
         .folder = folder()});
    EXPECT_EQ(limited->Wait(kSoon), 2);
    EXPECT_THAT(limited->output(),
                HasSubstr(absl::StrCat("(", std::string(limit, 9), ")")));
  }
}

}  // namespace
}  // namespace tributary
