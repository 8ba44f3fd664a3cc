// SPDX-License-Identifier: Apache-2.0
// Connections that are slow, silent, reset, damaged or replayed. A proxy
// between all processes of a run (tests/testing/faults/tcp_proxy.h) injects the
// faults; the run must end with the bits of a run without them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/faults/tcp_proxy.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

class NetworkTest : public FaultTest {
 protected:
  // Programs started from here on use a proxy with these rules.
  void Disturb(const std::vector<std::string>& rules) {
    proxy_ = testing::TcpProxy::Start(
        {.control = Path("proxy"), .rules = rules, .seed = 1});
    ASSERT_NE(proxy_, nullptr);
    environment_ = proxy_->Environment();
  }
  void EndDisturbance() {
    environment_.clear();
    proxy_.reset();
  }
  void TearDown() override {
    EndDisturbance();
    FaultTest::TearDown();
  }

  // The number of calls to servers that the run's workers have repeated, by
  // their logs.
  int CallsMadeAgain() {
    int calls = 0;
    for (const char* name : {"worker-0", "worker-1"}) {
      const std::string log = Read(absl::StrCat("run/logs/", name, ".log"));
      for (absl::string_view line : absl::StrSplit(log, '\n')) {
        int again = 0;
        if (!absl::ConsumeSuffix(&line, " calls to servers were made again"))
          continue;
        EXPECT_TRUE(
            absl::SimpleAtoi(line.substr(line.find_last_of(' ') + 1), &again))
            << line;
        calls += again;
      }
    }
    return calls;
  }

  // Waits until a server has received a contribution again and not counted it.
  // A contribution of the step before is a duplicate. In shared memory newer
  // bytes have replaced it, and only calls of older steps are sure to come;
  // these are refused.
  void ExpectRepetitions(bool in_shared_memory) {
    double seen = 0;
    EXPECT_TRUE(Eventually([&] {
      seen = in_shared_memory
                 ? SumOverServers("run", "tributary_server_rejected_total",
                                  R"(,reason="step")")
                 : SumOverServers("run", "tributary_server_duplicates_total");
      return seen > 0 || std::filesystem::exists(Path("run/summary.json"));
    }));
    EXPECT_GT(seen, 0) << "nothing came twice";
  }

  std::unique_ptr<testing::TcpProxy> proxy_;
};

struct Fault {
  const char* label;
  std::vector<std::string> rules;
  int lease_seconds = 30;
  int workers_lost = 0;
  int servers_lost = 0;
  int epochs = 40;
  std::string strategy = "parameter_server: {transport: grpc}";
};

class NetworkFaultTest : public NetworkTest,
                         public ::testing::WithParamInterface<Fault> {};

TEST_P(NetworkFaultTest, TheBitsStay) {
  const Fault& fault = GetParam();
  EditJob("lease_seconds: 3",
          absl::StrCat("lease_seconds: ", fault.lease_seconds, "}\nstrategy: {",
                       fault.strategy, "}\ncheckpoint: {every_steps: 50"));
  if (fault.strategy == "all_reduce: {}") fewest_ports_ = 1;
  if (fault.epochs != 40) {
    EditJob("epochs: 40", absl::StrCat("epochs: ", fault.epochs));
  }
  Disturb(fault.rules);
  const bool replays = absl::StrContains(fault.rules[0], " replay ");
  std::vector<std::string> words;
  // TLS is off, because under TLS the proxy cannot tell messages apart to flip
  // their bits, and a connection that is sent again fails in the handshake.
  if (replays || absl::StrContains(fault.rules[0], " flip ")) {
    words = {"--insecure", "--metrics-listen", "127.0.0.1:0"};
  }
  auto train = Train("run", words);
  if (replays) {
    ExpectRepetitions(absl::StrContains(fault.strategy, "shared_memory"));
  }
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  for (size_t rule = 0; rule < fault.rules.size(); ++rule) {
    EXPECT_GT(proxy_->fired(rule), 0) << fault.rules[rule];
  }
  EndDisturbance();
  EXPECT_EQ(Summary("run")["lost"]["workers"], fault.workers_lost);
  EXPECT_EQ(Summary("run")["lost"]["servers"], fault.servers_lost);
  EXPECT_EQ(Sha256("run"), Undisturbed());
  // Two workers push to two servers in each of 16 steps of an epoch. However
  // long a fault lasts, the workers make at most three times as many calls.
  const int again = CallsMadeAgain();
  EXPECT_LE(again, 2 * (fault.epochs * 16 * 2 * 2));
  if (absl::StartsWith(fault.rules[0], "worker-*>server-* both reset")) {
    EXPECT_GT(again, 0) << "no worker says how many";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, NetworkFaultTest,
    ::testing::Values(
        Fault{"PiecesAreLate", {"worker-*>server-* both delay ms=10"}},
        Fault{"AWorkerIsCutOffWithinItsLease",
              {"worker-1>* both stall after=500000 ms=2000"}},
        Fault{"AWorkerIsCutOffBeyondItsLease",
              {"worker-1>* both stall after=500000 ms=6000"},
              2,
              1},
        // Messages are delayed, so that the run outlasts the lease.
        Fault{"AServerIsCutOffFromTheCoordinatorBeyondItsLease",
              {"server-0>coordinator there stall after=2000 ms=6000",
               "worker-*>server-* both delay ms=4"},
              2,
              0,
              1,
              80},
        Fault{"RequestsArriveAnswersAreLost",
              {"worker-*>server-* back drop after=300000 ms=1500 "
               "every=1000000 times=3"}},
        // This lasts longer than a ping waits for its answer
        // (common/wire/channel.h).
        Fault{"AWorkerIsCutOffFromTheServersForLong",
              {"worker-1>server-* both stall after=300000 ms=20000"}},
        Fault{"ServersAnswersAreLostForLong",
              {"worker-1>server-* back drop after=300000 ms=10000"}},
        Fault{"TheCoordinatorsAnswersAreLost",
              {"*>coordinator back drop after=8000 ms=1500"}},
        Fault{"ConnectionsToServersAreReset",
              {"worker-*>server-* both reset after=100000 every=300000 "
               "times=20"}},
        Fault{"ConnectionsToTheCoordinatorAreReset",
              {"*>coordinator both reset after=10000 every=10000 times=10"}},
        // Without a ping (common/wire/channel.h) this would never be noticed.
        Fault{"AConnectionToAServerGoesSilent",
              {"worker-1>server-0 both silence after=300000"}},
        Fault{"BitsOfTensorsFlip",
              {"worker-*>server-* there flip after=50000 every=200000 times=20",
               "worker-*>server-* back flip after=70000 every=200000 "
               "times=20"}},
        Fault{"ConnectionsToServersAreRepeated",
              {"worker-*>server-* there replay after=20000 every=20000 "
               "times=10 ms=300"}},
        Fault{"AConnectionBetweenRanksIsReset",
              {"worker-*>worker-* both reset after=300000"},
              30,
              0,
              0,
              20,
              "all_reduce: {}"},
        Fault{"PiecesBetweenRanksAreLate",
              {"worker-*>worker-* both delay ms=3"},
              30,
              0,
              0,
              10,
              "all_reduce: {}"},
        // The calls name bytes in shared memory, and are repeated over gRPC.
        Fault{"AnswersAboutSharedMemoryAreLost",
              {"worker-*>server-* back drop after=20000 ms=1500 every=60000 "
               "times=3"},
              30,
              0,
              0,
              40,
              "parameter_server: {transport: shared_memory}"},
        Fault{"CallsAboutSharedMemoryAreReset",
              {"worker-*>server-* both reset after=5000 every=20000 times=20"},
              30,
              0,
              0,
              40,
              "parameter_server: {transport: shared_memory}"},
        Fault{"BitsOfCallsAboutSharedMemoryFlip",
              {"worker-*>server-* there flip after=5000 every=20000 times=10",
               "worker-*>server-* back flip after=7000 every=20000 times=10"},
              30,
              0,
              0,
              40,
              "parameter_server: {transport: shared_memory}"},
        Fault{"CallsAboutSharedMemoryAreRepeated",
              {"worker-*>server-* there replay after=10000 every=50000 "
               "times=5 ms=300"},
              30,
              0,
              0,
              40,
              "parameter_server: {transport: shared_memory}"}),
    [](const auto& info) { return info.param.label; });

// This happens when the coordinator's host loses its power and another host
// gets its address: nobody resets the members' connections to the first one.
TEST_F(NetworkTest, AnotherCoordinatorIsFoundBehindALinkThatHasGoneSilent) {
  EditJob("lease_seconds: 3",
          "lease_seconds: 60}\nstrategy: {parameter_server: {transport: grpc}");
  Disturb({"*>coordinator both silence after=20000"});
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> members;
  for (const std::string role : {"server", "worker"}) {
    for (const std::string index : {"0", "1"}) {
      members.push_back(Start({absl::StrCat("tributary-", role),
                               "--coordinator", address, "--index", index}));
    }
  }
  ASSERT_TRUE(Eventually([this] { return proxy_->fired(0) > 0; }));
  ReplaceCoordinator("run", address, *coordinator);
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  EndDisturbance();
  EXPECT_EQ(Summary("run")["lost"]["workers"], 0);
  EXPECT_EQ(Summary("run")["lost"]["servers"], 0);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

// The ranks of a job without servers give their weights to the coordinator.
TEST_F(NetworkTest, BitsOfTheFinalWeightsFlip) {
  fewest_ports_ = 1;
  EditJob("{in: 16, out: 96}", "{in: 16, out: 20000}");
  EditJob("{in: 96, out: 1}", "{in: 20000, out: 1}");
  EditJob("learning_rate: 0.05", "learning_rate: 0.00001");
  EditJob("epochs: 40", "epochs: 1");
  EditJob("{servers: 2, ", "{servers: 0, ");
  Write("job.yaml", Read("job.yaml") + "strategy: {all_reduce: {}}\n");
  Disturb(
      {"worker-*>coordinator there flip after=200000 every=250000 times=4"});
  // Without TLS, in which the proxy cannot tell messages apart.
  auto train = Train("run", {"--insecure"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_EQ(proxy_->fired(0), 4);
  EndDisturbance();
  EXPECT_EQ(Summary("run")["lost"]["workers"], 0);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

}  // namespace
}  // namespace tributary
