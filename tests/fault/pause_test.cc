// SPDX-License-Identifier: Apache-2.0
// A process is stopped for a while: which process is named as the cause, how
// soon, and how the run continues. If TRIBUTARY_STOP_SECONDS is set, the
// process stays stopped for that time, not only until it is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/http/http_get.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using testing::IsGone;

absl::Duration LeastStop() {
  const char* seconds = std::getenv("TRIBUTARY_STOP_SECONDS");
  double number = 0;
  if (seconds != nullptr && !absl::SimpleAtod(seconds, &number)) {
    ADD_FAILURE() << "TRIBUTARY_STOP_SECONDS is " << seconds;
  }
  return absl::Seconds(number);
}

char StateOf(pid_t pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string id, name;
  char state = '?';
  stat >> id >> name >> state;
  return state;
}

struct Victim {
  const char* name;
  const char* role;
  int index;
};

class PauseTest : public FaultTest,
                  public ::testing::WithParamInterface<Victim> {
 protected:
  void TearDown() override {
    train_.reset();
    FaultTest::TearDown();
  }

  // Starts a run with a lease longer than every pause here, or with a short
  // one.
  void Begin(int lease_seconds, const std::string& on_worker_loss = "wait") {
    train_ = Train(
        "run", {"--set", "cluster.on_worker_loss=" + on_worker_loss, "--set",
                "training.epochs=60", "--set",
                absl::StrCat("cluster.lease_seconds=", lease_seconds), "--set",
                "strategy.parameter_server.sync_timeout_seconds=200",
                "--metrics-listen", "127.0.0.1:0"});
    ASSERT_TRUE(train_->WaitForOutput("epoch 3/60: test", kSoon));
    const std::string& output = train_->output();
    const std::string before = "coordinator ";
    size_t begin = output.find(before + "127.0.0.1:");
    ASSERT_NE(begin, std::string::npos) << output;
    begin += before.size();
    coordinator_ =
        output.substr(begin, output.find_first_of(" ,\n", begin) - begin);
    const json status = Status();
    for (const json& member : status["members"]) {
      const std::string metrics = member["metrics_address"];
      const std::string name = absl::StrCat(member["role"].get<std::string>(),
                                            " ", member["index"].get<int>());
      ports_[name] = std::stoi(metrics.substr(metrics.rfind(':') + 1));
      addresses_[name] = member["address"];
    }
    victim_ =
        PidOf("run", absl::StrCat(GetParam().role, " ", GetParam().index));
    ASSERT_GT(victim_, 0);
  }

  json Status() {
    const auto result =
        testing::RunProcess({testing::Program("tributary"), "status",
                             "--coordinator", coordinator_, "--json"});
    return json::parse(result.output, nullptr, /*allow_exceptions=*/false);
  }
  json Member(const char* role, int index) {
    const json status = Status();
    if (status.is_discarded()) return {{"alive", true}};  // no status yet
    for (const json& member : status["members"]) {
      if (member["role"] == role && member["index"] == index) return member;
    }
    return {};
  }
  std::string Page(const std::string& member) {
    return testing::HttpGet(ports_.at(member), "/metrics").body;
  }
  // The value of a series in a server's metrics; 0 when it is missing.
  double Value(int server, const std::string& series) {
    const std::string page = Page(absl::StrCat("server ", server));
    const size_t at = page.find(series + " ");
    return at == std::string::npos
               ? 0
               : std::stod(page.substr(at + series.size() + 1));
  }
  // The most steps applied at a server that is not stopped.
  double Version() {
    double version = 0;
    for (int i = 0; i < 2; ++i) {
      if (Stops("server") && i == GetParam().index) continue;
      version = std::max(
          version,
          Value(i, absl::StrCat("tributary_server_max_version{shard=\"", i,
                                "\"}")));
    }
    return version;
  }
  static bool Stops(const std::string& role) { return role == GetParam().role; }

  void Stop() {
    kill(victim_, SIGSTOP);
    ASSERT_TRUE(Eventually([this] { return StateOf(victim_) == 'T'; }));
  }

  // A stopped worker is named by those servers, one or both, that its step has
  // not reached. A stopped server is named by the workers.
  bool NamedInStatus() {
    if (Stops("worker")) {
      const json named = json::array({GetParam().index});
      return Member("server", 0).value("waiting_for_ranks", json()) == named ||
             Member("server", 1).value("waiting_for_ranks", json()) == named;
    }
    const std::string whom = Member("worker", 0).value("waiting_for", "");
    return absl::StrContains(whom, "an answer to the push of step") &&
           absl::StrContains(
               whom, addresses_.at(absl::StrCat("server ", GetParam().index)));
  }
  bool NamedInMetrics() {
    if (Stops("worker")) {
      return SumOfServers("tributary_server_waiting_for_rank") > 0;
    }
    return absl::StrContains(
        Page("worker 0"),
        absl::StrCat("tributary_worker_waiting_for_shard{rank=\"0\",shard=\"",
                     GetParam().index, "\"} 1\n"));
  }
  // The sum of a series over the servers, with the label of the stopped
  // worker's rank.
  double SumOfServers(const std::string& metric) {
    double sum = 0;
    for (int i = 0; i < 2; ++i) {
      sum += Value(i, absl::StrCat(metric, "{shard=\"", i, "\",rank=\"",
                                   GetParam().index, "\"}"));
    }
    return sum;
  }

  std::unique_ptr<RunningProcess> train_;
  std::string coordinator_;
  std::map<std::string, int> ports_;  // metrics ports, by "worker 0"
  std::map<std::string, std::string> addresses_;
  pid_t victim_ = 0;
};

TEST_P(PauseTest, AStoppedProcessIsNamedWithinTwoStepsAndTheBitsStay) {
  ASSERT_NO_FATAL_FAILURE(Begin(/*lease_seconds=*/100));
  ASSERT_NO_FATAL_FAILURE(Stop());
  const absl::Time stopped = absl::Now();
  const double version = Version();
  if (Stops("worker")) {  // for longer than a step on a busy machine
    const std::string seconds = "tributary_server_straggler_wait_seconds_total";
    const double before = SumOfServers(seconds);
    ASSERT_TRUE(
        Eventually([&] { return SumOfServers(seconds) > before + 0.15; }));
  }
  ASSERT_TRUE(Eventually([this] { return NamedInMetrics(); }));
  TellSeconds("until_named_in_metrics", absl::Now() - stopped);
  ASSERT_TRUE(Eventually([this] { return NamedInStatus(); }));
  TellSeconds("until_named_in_status", absl::Now() - stopped);
  const double steps = Version() - version;
  printf("steps until then: %.0f\n", steps);
  EXPECT_LE(steps, 2);
  absl::SleepFor(stopped + LeastStop() - absl::Now());
  EXPECT_TRUE(NamedInMetrics() && NamedInStatus()) << "as long as it lasts";
  kill(victim_, SIGCONT);
  EXPECT_EQ(train_->Wait(kSoon), 0) << train_->output();
  const json lost = Summary("run")["lost"];
  EXPECT_EQ(lost["workers"], 0);
  EXPECT_EQ(lost["servers"], 0);
  EXPECT_EQ(lost["rollbacks"], 0);
  EXPECT_EQ(Sha256("run"), Undisturbed({"--set", "training.epochs=60"}));
}

// The stopped process loses its place and is killed.
TEST_P(PauseTest, AProcessThatIsStoppedBeyondItsLeaseIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(Begin(/*lease_seconds=*/3));
  ASSERT_NO_FATAL_FAILURE(Stop());
  const absl::Time stopped = absl::Now();
  ASSERT_TRUE(Eventually([this] {  // its replacement may have joined already
    const json member = Member(GetParam().role, GetParam().index);
    return !member["alive"] || member.value("pid", victim_) != victim_;
  }));
  TellSeconds("until_lost", absl::Now() - stopped);
  EXPECT_TRUE(IsGone(victim_, kSoon));
  EXPECT_EQ(train_->Wait(kSoon), 0) << train_->output();
  const json lost = Summary("run")["lost"];
  EXPECT_EQ(lost["workers"], Stops("worker") ? 1 : 0);
  EXPECT_EQ(lost["servers"], Stops("server") ? 1 : 0);
  EXPECT_EQ(Sha256("run"), Undisturbed({"--set", "training.epochs=60"}));
}

// Another process takes over the stopped worker's rank, perhaps before the loss
// is noticed. Then the stopped process is killed and not replaced.
TEST_P(PauseTest, AProcessThatIsStoppedBeyondItsLeaseIsDoneWithout) {
  if (!Stops("worker")) GTEST_SKIP() << "servers are never taken over";
  ASSERT_NO_FATAL_FAILURE(Begin(/*lease_seconds=*/3, "shrink"));
  ASSERT_NO_FATAL_FAILURE(Stop());
  EXPECT_TRUE(IsGone(victim_, kSoon));
  EXPECT_EQ(train_->Wait(kSoon), 0) << train_->output();
  EXPECT_EQ(Summary("run")["lost"]["workers"], 1);
  EXPECT_EQ(Sha256("run"), Undisturbed({"--set", "training.epochs=60"}));
}

// The processes are daemons: nobody kills one that has lost its place.
using ContinuedTest = FaultTest;

TEST_F(ContinuedTest, AServerWhosePlaceIsTakenEndsAndTheBitsStay) {
  Write("job.yaml", Read("job.yaml") + "checkpoint: {every_steps: 16}\n");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> members;
  members.push_back(
      Start({"tributary-server", "--coordinator", address, "--index", "0"}));
  auto victim =
      Start({"tributary-server", "--coordinator", address, "--index", "1"});
  const std::vector<std::string> worker = {"tributary-worker", "--coordinator",
                                           address};
  members.push_back(Start(worker));
  auto missing = Start(worker);
  ASSERT_NE(WaitForCheckpoint(Path("run/checkpoints")), "");
  victim->Signal(SIGSTOP);
  // Without this worker the job cannot end before the victim does.
  missing->Signal(SIGKILL);
  EXPECT_EQ(missing->Wait(kSoon), 128 + SIGKILL);
  members.push_back(Start({"tributary-server", "--coordinator", address}));
  ASSERT_TRUE(coordinator->WaitForOutput("everybody goes back to step", kSoon))
      << coordinator->output();
  victim->Signal(SIGCONT);
  EXPECT_EQ(victim->Wait(kSoon), 1) << victim->output();
  EXPECT_THAT(victim->output(),
              ContainsRegex("the lease of server 1 as incarnation [0-9]+ is "
                            "lost to a newer one"));
  members.push_back(Start(worker));
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  EXPECT_EQ(Summary("run")["lost"]["servers"], 1);
  EXPECT_EQ(Summary("run")["lost"]["workers"], 1);
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 1);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

INSTANTIATE_TEST_SUITE_P(Victims, PauseTest,
                         ::testing::Values(Victim{"Worker", "worker", 1},
                                           Victim{"Server", "server", 1}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tributary
