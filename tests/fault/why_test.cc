// SPDX-License-Identifier: Apache-2.0
// Reasons why a job does not advance, injected into real jobs: how long
// `tributary why` takes to name each one, and in which sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/why_fixture.h"
#include "tests/testing/faults/tcp_proxy.h"
#include "tests/testing/paths.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST_F(WhyTest, AJobThatAdvances) {
  auto train = Begin();
  const std::string sentence =
      NamesIt("advances", "none", absl::Now(), {"job"});
  EXPECT_THAT(sentence, ContainsRegex("^advances: step [0-9,]+ of 1,600,000, "
                                      "[0-9.k]+ steps a second, last finished "
                                      "[0-9.]+ s ago$"));
  // The job is the only one, and it has a name.
  EXPECT_EQ(Why({})["cause"], "none");
  EXPECT_EQ(Why({"fault"})["cause"], "none");
  EXPECT_TRUE(Why({"fualt"}).is_discarded());
  EXPECT_EQ(exit_code_, 2);
  End(*train);
}

TEST_F(WhyTest, AStoppedWorker) {
  auto train = Begin();
  const pid_t pid = PidOf("job", "worker 1");
  kill(pid, SIGSTOP);
  EXPECT_THAT(
      NamesIt("stopped_worker", "stopped-process", absl::Now(), {"job"}),
      AllOf(ContainsRegex("step [0-9,]+ waits for worker 1 "),
            HasSubstr(absl::StrCat("pid ", pid)), HasSubstr("SIGSTOP")));
  EXPECT_EQ(exit_code_, 0);
  kill(pid, SIGCONT);
  ExpectAdvances();
  End(*train);
}

// With a backup worker no step waits for the slowest worker, whose
// contributions are dropped.
TEST_F(WhyTest, AStoppedBackupWorkerHoldsNobodyUp) {
  EditJob("workers: 2", "workers: 3");
  EditJob("cluster:",
          "strategy: {parameter_server: {sync: {bsp: {backup_workers: 1}}}}\n"
          "cluster:");
  auto train = Begin({"--metrics-listen", "127.0.0.1:0"});
  const pid_t pid = PidOf("job", "worker 2");
  kill(pid, SIGSTOP);
  json answer;
  EXPECT_TRUE(Eventually([&] {
    answer = Why({"job"});
    return answer.is_object() &&
           absl::StrContains(std::string(answer["sentence"]), "goes on");
  })) << answer;
  EXPECT_EQ(answer["cause"], "stopped-process");
  EXPECT_THAT(std::string(answer["sentence"]),
              ContainsRegex("^goes on to step [0-9,]+ without worker 2 .*, "
                            "whose process is stopped \\(SIGSTOP\\)"));
  const auto sum = [this](const std::string& metric) {
    return SumOverServers("job", "tributary_server_" + metric);
  };
  const double dropped = sum("dropped_total");
  const double version = sum("max_version");
  EXPECT_GT(version, 0);
  EXPECT_TRUE(Eventually([&] { return sum("max_version") > version + 20; }));
  EXPECT_EQ(sum("dropped_total"), dropped) << "each step needs the other two";
  kill(pid, SIGCONT);
  EXPECT_TRUE(Eventually([&] { return sum("dropped_total") > dropped; }));
  ExpectAdvances();
  End(*train);
}

TEST_F(WhyTest, AStoppedServer) {
  auto train = Begin();
  const pid_t pid = PidOf("job", "server 1");
  kill(pid, SIGSTOP);
  EXPECT_THAT(
      NamesIt("stopped_server", "stopped-process", absl::Now(), {"job"}),
      AllOf(HasSubstr("waits for server 1 "),
            HasSubstr(absl::StrCat("pid ", pid))));
  kill(pid, SIGCONT);
  End(*train);
}

TEST_F(WhyTest, AStoppedAndAKilledCoordinator) {
  auto train = Begin();
  train->Signal(SIGSTOP);
  EXPECT_THAT(NamesIt("stopped_coordinator", "stopped-coordinator", absl::Now(),
                      {"job"}),
              HasSubstr("SIGSTOP"));
  EXPECT_EQ(exit_code_, 1);
  train->Signal(SIGCONT);
  train->Signal(SIGKILL);
  train->Wait(kSoon);
  EXPECT_THAT(
      NamesIt("killed_coordinator", "no-coordinator", absl::Now(), {"job"}),
      HasSubstr("has ended without a summary"));
  EXPECT_EQ(exit_code_, 1);
  EXPECT_EQ(Why({})["cause"], "no-coordinator") << "it is in the register";
  // A new run in the folder of a killed one can be asked as well.
  std::filesystem::remove_all(Path("job"));
  End(*Begin());
}

TEST_F(WhyTest, AMissingServer) {
  fewest_ports_ = 2;
  auto coordinator = Coordinate("job", &address_);
  const absl::Time begin = absl::Now();
  StartMember("tributary-server");
  StartMember("tributary-worker");
  StartMember("tributary-worker");
  EXPECT_TRUE(Eventually([&] {
    const json answer = Why({"job"});
    return answer.is_object() && answer["sentence"].get<std::string>().find(
                                     "worker") == std::string::npos;
  }));
  EXPECT_THAT(NamesIt("missing_server", "missing-member", begin, {"job"}),
              AllOf(HasSubstr("has not begun"), HasSubstr("server 1"),
                    HasSubstr(" for ")));
  End(*coordinator);
}

TEST_F(WhyTest, AKilledWorkerThatNobodyReplaces) {
  auto coordinator = Coordinate("job", &address_);
  StartMember("tributary-server");
  StartMember("tributary-server");
  StartMember("tributary-worker", {"--index", "0"});
  StartMember("tributary-worker", {"--index", "1"});
  ExpectAdvances();
  members_.back()->Signal(SIGKILL);
  members_.back()->Wait(kSoon);
  EXPECT_THAT(NamesIt("killed_worker", "ended-process", absl::Now(), {"job"}),
              AllOf(HasSubstr("waits for worker 1 "), HasSubstr("has ended")));
  KillAll(*coordinator);
}

TEST_F(WhyTest, ASilentHost) {
  if (getuid() != 0) GTEST_SKIP() << "needs root for another host name";
  auto coordinator = Coordinate("job", &address_);
  StartMember("tributary-server");
  StartMember("tributary-server");
  StartMember("tributary-worker", {"--index", "0"});
  members_.push_back(RunningProcess::Start(
      {.command = {"/usr/bin/unshare", "--uts", "/bin/sh", "-c",
                   absl::StrCat("hostname node-b; exec ",
                                testing::Program("tributary-worker"),
                                " --index 1 --coordinator ", address_)},
       .folder = folder(),
       .environment = environment_}));
  ExpectAdvances();
  members_.back()->Signal(SIGSTOP);
  EXPECT_THAT(NamesIt("silent_host", "silent-host", absl::Now(), {"job"}),
              AllOf(HasSubstr("waits for worker 1 (node-b"),
                    HasSubstr("the host node-b is silent")));
  members_.back()->Signal(SIGCONT);
  ExpectAdvances();
  End(*coordinator);
}

TEST_F(WhyTest, ASlowWorker) {
  EditJob("batch_size: 20", "batch_size: 600");
  auto coordinator = Coordinate("job", &address_);
  const absl::Time begin = absl::Now();
  StartMember("tributary-server");
  StartMember("tributary-server");
  StartMember("tributary-worker", {"--index", "0"});
  StartMember("tributary-worker", {"--index", "1", "--slow-down", "1000"});
  EXPECT_THAT(NamesIt("slow_worker", "slow-worker", begin, {"job"}),
              HasSubstr("worker 1 "));
  KillAll(*coordinator);
}

TEST_F(WhyTest, ASlowLink) {
  EditJob("lease_seconds: 20",
          "lease_seconds: 20}\nstrategy: {parameter_server: {transport: grpc}");
  auto proxy = testing::TcpProxy::Start(
      {.control = Path("proxy"),
       .rules = {"worker-1>server-* both delay ms=100"},
       .seed = 1});
  ASSERT_NE(proxy, nullptr);
  Isolate(proxy->Environment());
  const absl::Time begin = absl::Now();
  auto train = Train("job");
  Isolate({});
  EXPECT_TRUE(train->WaitForOutput("coordinator", kSoon));
  EXPECT_THAT(NamesIt("slow_link", "slow-link", begin, {"job"}),
              AllOf(HasSubstr("worker 1 "), HasSubstr("link")));
  EXPECT_GT(proxy->fired(0), 0);
  train->Signal(SIGKILL);  // a stop would take a minute over this link
  train->Wait(kSoon);
}

TEST_F(WhyTest, AProgramThatHasNotSubmittedItsJob) {
  fewest_ports_ = 0;
  auto coordinator = Start({"tributary-coordinator", "--workers", "2",
                            "--listen", "127.0.0.1:0", "--run-dir", "job"});
  EXPECT_TRUE(coordinator->WaitForOutput("waits for a program", kSoon));
  EXPECT_THAT(NamesIt("no_program", "no-program", absl::Now(), {}),
              HasSubstr("say what it trains"));
  auto stop = Start({"tributary", "stop"});
  EXPECT_EQ(stop->Wait(kSoon), 0) << stop->output();
  EXPECT_EQ(coordinator->Wait(kSoon), 130) << coordinator->output();
  EXPECT_THAT(coordinator->output(), HasSubstr("as asked: tributary stop"));
}

TEST_F(WhyTest, AJobThatDivergesAndFails) {
  EditJob("learning_rate: 0.0001", "learning_rate: 1e12");
  const absl::Time begin = absl::Now();
  auto train = Train("job", {"--set", "training.divergence=fail"});
  EXPECT_EQ(train->Wait(kSoon), 1) << train->output();
  EXPECT_THAT(NamesIt("diverged", "diverges", begin, {"job"}),
              AllOf(HasSubstr("failed after step"),
                    HasSubstr("for step 3 is not finite")));
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(WhyTest, ARunThatIsDone) {
  EditJob("epochs: 100000", "epochs: 2");
  auto train = Train("job");
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_EQ(NamesIt("done", "done", absl::Now(), {"job"}),
            "is done after step 32 of 32");
  EXPECT_EQ(exit_code_, 0);
}

class WhyDiskTest : public WhyTest {
 protected:
  void SetUp() override {
    WhyTest::SetUp();
    std::filesystem::create_directory(disk_);
    if (mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=1m") != 0) {
      GTEST_SKIP() << "a tmpfs cannot be mounted here";
    }
    mounted_ = true;
  }
  void TearDown() override {
    WhyTest::TearDown();
    if (!mounted_) return;
    EXPECT_EQ(umount(disk_.c_str()), 0);
  }

  const std::string disk_ = Path("disk");
  bool mounted_ = false;
};

TEST_F(WhyDiskTest, AFullDiskForCheckpoints) {
  auto train = Begin({"--set", "checkpoint.every_steps=50", "--set",
                      absl::StrCat("checkpoint.directory=", disk_)});
  ASSERT_NE(WaitForCheckpoint(disk_), "");
  {
    std::ofstream filler(disk_ + "/filler", std::ios::binary);
    const std::string page(4096, 'x');
    while (filler << page << std::flush) {
    }
  }
  EXPECT_THAT(
      NamesIt("full_disk", "full-disk", absl::Now(), {"job"}),
      AllOf(HasSubstr("advances: step "), HasSubstr("No space left on device"),
            HasSubstr("the last complete one is of step")));
  std::filesystem::remove(disk_ + "/filler");
  EXPECT_TRUE(Eventually([&] { return Why({"job"})["cause"] == "none"; }))
      << "there is room again";
  End(*train);
}

}  // namespace
}  // namespace tributary
