// SPDX-License-Identifier: Apache-2.0
// Coordinators that die at a failpoint and are restarted with the same command,
// and two coordinators on one run directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/member/coordinator_client.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/http/http_get.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TakeoverTest : public FaultTest {
 protected:
  std::vector<std::string> CoordinatorAt(const std::string& address) {
    return {"tributary-coordinator",
            "--job",
            "job.yaml",
            "--run-dir",
            "run",
            "--listen",
            address};
  }

  // Starts the members of the current job.yaml.
  std::vector<std::unique_ptr<RunningProcess>> StartMembers(
      const std::string& address, int servers, int workers) {
    std::vector<std::unique_ptr<RunningProcess>> members;
    for (int i = 0; i < servers + workers; ++i) {
      members.push_back(
          Start({i < servers ? "tributary-server" : "tributary-worker",
                 "--coordinator", address}));
    }
    return members;
  }

  // Runs job.yaml to its end under coordinators with these failpoints; a killed
  // coordinator is restarted with the same command.
  void RunToTheEnd(const std::string& failpoints, int servers, int workers) {
    SetFailpoints(failpoints);
    std::string address;
    auto coordinator = Coordinate("run", &address);
    SetFailpoints("");
    auto members = StartMembers(address, servers, workers);
    int kills = 0;
    int exit_code = coordinator->Wait(kSoon);
    while (exit_code == 128 + SIGKILL) {
      ++kills;
      SetFailpoints(failpoints);
      coordinator = Start(CoordinatorAt(address));
      SetFailpoints("");
      exit_code = coordinator->Wait(kSoon);
    }
    EXPECT_EQ(exit_code, 0) << coordinator->output();
    for (auto& member : members) {
      EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
    }
    EXPECT_EQ(kills, std::count(failpoints.begin(), failpoints.end(), ',') + 1)
        << failpoints;
  }

  // The summary covers the whole job, independent of the number of
  // coordinators.
  void ExpectWhole(int64_t steps, size_t evaluations) {
    const json summary = Summary("run");
    EXPECT_EQ(summary["status"], "done");
    EXPECT_EQ(summary["steps"], steps);
    EXPECT_EQ(summary["evaluations"].size(), evaluations);
    std::istringstream lines(Read("run/metrics.jsonl"));
    int64_t step = 0, samples = 0;
    for (std::string line; std::getline(lines, line);) {
      const json record = json::parse(line);
      EXPECT_EQ(record["step"], ++step);
      samples += record["samples"].get<int64_t>();
    }
    EXPECT_EQ(step, steps);
    EXPECT_EQ(summary["samples"], samples);
    EXPECT_FALSE(fs::exists(Path("run/coordinator.lock")));
  }

  // A page of the coordinator whose metrics prometheus-targets.json names; an
  // empty object: there is none.
  json PageOf(const std::string& run, const std::string& path) {
    const json targets =
        json::parse(Read(run + "/prometheus-targets.json"), nullptr, false);
    if (!targets.is_array()) return json::object();
    for (const json& group : targets) {
      if (group["labels"]["job"] != "tributary-coordinator") continue;
      const std::string address = group["targets"][0];
      const int port = std::stoi(address.substr(address.rfind(':') + 1));
      const json page =
          json::parse(testing::HttpGet(port, path).body, nullptr, false);
      if (page.is_object()) return page;
    }
    return json::object();
  }

  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(Path("run"))) {
      names.insert(entry.path().string());
    }
    return names;
  }
};

TEST_F(TakeoverTest, TheStatusPageOfASuccessorHasTheWholeHistory) {
  EditJob("epochs: 40", "epochs: 100000");
  std::string address;
  const std::vector<std::string> metrics = {"--metrics-listen", "127.0.0.1:0"};
  auto coordinator = Coordinate("run", &address, metrics);
  auto members = StartMembers(address, 2, 2);
  const auto steps = [this] {
    return PageOf("run", "/status.json").value("step", 0);
  };
  ASSERT_TRUE(Eventually([&] { return steps() > 40; }));
  coordinator->Signal(SIGKILL);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGKILL);
  std::vector<std::string> again = CoordinatorAt(address);
  again.insert(again.end(), metrics.begin(), metrics.end());
  coordinator = Start(again);
  json history;
  ASSERT_TRUE(Eventually([&] {
    history = PageOf("run", "/history.json");
    return history.contains("events") && history["events"].size() > 1 &&
           !history["loss"].empty() && history["loss"].back()[0] > 40;
  })) << history;
  EXPECT_EQ(history["events"][0]["text"], "the job is running");
  EXPECT_THAT(history["events"][1]["text"].get<std::string>(),
              HasSubstr("another coordinator continues the job after step"));
  EXPECT_LE(history["loss"][0][0], history["steps_per_point"]);
  EXPECT_EQ(history["evaluations"][0]["points"][0][0], 16);  // the first epoch
  coordinator->Signal(SIGTERM);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGTERM) << coordinator->output();
  for (auto& member : members) EXPECT_EQ(member->Wait(kSoon), 0);
  EXPECT_THAT(Read("run/events.jsonl"), HasSubstr("another coordinator"));
}

// A bit has flipped, and zeros follow the last line, as after a power cut.
TEST_F(TakeoverTest, ADamagedLogKeepsNoSuccessorFromGoingOn) {
  EditJob("epochs: 40", "epochs: 100000");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  auto members = StartMembers(address, 2, 2);
  const auto lines = [this] {
    const std::string metrics = Read("run/metrics.jsonl");
    return std::count(metrics.begin(), metrics.end(), '\n');
  };
  ASSERT_TRUE(Eventually([&] { return lines() > 40; }));
  coordinator->Signal(SIGKILL);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGKILL);
  fs::remove(Path("run/coordinator.totals"));
  std::string metrics = Read("run/metrics.jsonl");
  metrics[metrics.find('{', metrics.size() / 2)] = 'x';
  Write("run/metrics.jsonl", metrics + std::string(200'000, '\0'));
  const auto before = lines();
  coordinator = Start(CoordinatorAt(address));
  ASSERT_TRUE(Eventually([&] { return lines() > before + 40; }))
      << coordinator->output();
  coordinator->Signal(SIGTERM);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGTERM) << coordinator->output();
  EXPECT_THAT(coordinator->output(),
              HasSubstr("metrics.jsonl: skipped 1 line that cannot be read"));
  for (auto& member : members) EXPECT_EQ(member->Wait(kSoon), 0);
  EXPECT_EQ(Summary("run")["status"], "interrupted");
}

// ---- two coordinators

TEST_F(TakeoverTest, ASecondCoordinatorIsRefusedByNameAndChangesNothing) {
  std::string address;
  auto coordinator = Coordinate("run", &address);
  // Looks like a file that the first coordinator is writing.
  const std::string partial = "run/weights.safetensors.partial-1-1";
  Write(partial, "half");
  const std::set<std::string> before = Names();
  for (const std::string& other : {std::string("127.0.0.1:0"), address}) {
    auto second = Start(CoordinatorAt(other));
    EXPECT_EQ(second->Wait(kSoon), 2);
    EXPECT_THAT(second->output(),
                HasSubstr(absl::StrCat("run directory run is in use by the "
                                       "coordinator at ",
                                       address)));
    EXPECT_THAT(second->output(),
                HasSubstr(absl::StrCat("pid ", coordinator->pid())));
    EXPECT_EQ(Names(), before) << other;
  }
  auto train = Train("run");
  EXPECT_EQ(train->Wait(kSoon), 2);
  EXPECT_EQ(Names(), before);
  fs::remove(Path(partial));
  auto members = StartMembers(address, 2, 2);
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (auto& member : members) EXPECT_EQ(member->Wait(kSoon), 0);
  ExpectWhole(640, 40);
}

// For cases in which the lock has no effect, as on a machine that was cut off.
TEST_F(TakeoverTest, ACoordinatorThatHearsOfALaterOneEndsAndWritesNothing) {
  fewest_ports_ = 1;
  std::string address;
  auto coordinator = Coordinate("run", &address);
  auto client = CoordinatorClient::Create({.address = address}).value();
  v1::RegisterRequest registration;
  registration.set_role(v1::ROLE_WORKER);
  registration.set_instance("a worker");
  const v1::RegisterResponse place =
      client->Register(registration, kSoon).value();
  EXPECT_EQ(place.term(), 1u);
  client->SetTicket(place.ticket());
  const std::string state = Read("run/coordinator.state");
  const std::set<std::string> before = Names();
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_role(v1::ROLE_WORKER);
  heartbeat.set_incarnation(place.incarnation());
  heartbeat.set_job_id(place.job_id());
  heartbeat.set_term(2);
  EXPECT_FALSE(client->Heartbeat(heartbeat, absl::Seconds(1)).ok());
  EXPECT_EQ(coordinator->Wait(kSoon), 1);
  EXPECT_THAT(coordinator->output(),
              HasSubstr("a later coordinator goes on with this job: its term "
                        "is 2, this one's 1"));
  EXPECT_EQ(Read("run/coordinator.state"), state);
  EXPECT_EQ(Names(), before);
}

TEST_F(TakeoverTest, ARunDirectoryThatIsRemovedEndsTheRunWithASentence) {
  fewest_ports_ = 0;  // the logs are removed, too
  auto train = Train("run", {"--set", "training.epochs=100000"});
  ASSERT_TRUE(train->WaitForOutput("epoch 2/100000: test", kSoon));
  EXPECT_TRUE(Eventually([&] {
    std::error_code error;
    fs::remove_all(Path("run"), error);
    return !fs::exists(Path("run"));
  }));
  EXPECT_EQ(train->Wait(kSoon), 1);
  EXPECT_THAT(train->output(), HasSubstr("removed"));
}

// ---- killed at a place, with servers

class CoordinatorPointTest : public TakeoverTest,
                             public ::testing::WithParamInterface<const char*> {
};

INSTANTIATE_TEST_SUITE_P(
    Points, CoordinatorPointTest,
    ::testing::Values(
        // Each time that the state of a run is saved before it trains.
        "coordinator-state:2:kill,coordinator-state:3:kill,"
        "coordinator-state:4:kill,coordinator-state:5:kill",
        "coordinator-state:6:kill,coordinator-state:7:kill",
        "coordinator-checkpoint-report:1:kill",
        "coordinator-checkpoint-report:2:kill,"
        "coordinator-checkpoint-report:3:kill",
        "coordinator-manifest:1:kill", "coordinator-weights-read:1:kill",
        "coordinator-weights-saved:1:kill", "coordinator-done:1:kill",
        "coordinator-summary:1:kill"),
    [](const auto& info) {
      std::string name = info.param;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
      return name;
    });

TEST_P(CoordinatorPointTest, AnotherOneEndsTheJobWithTheSameBitsAndASummary) {
  EditJob("cluster:", "checkpoint: {every_steps: 160}\ncluster:");
  EditJob("epochs: 40", "epochs: 20");
  RunToTheEnd(GetParam(), 2, 2);
  ExpectWhole(320, 20);
  EXPECT_EQ(Summary("run")["checkpoint_step"], 320);
  EXPECT_TRUE(
      fs::exists(Path("run/checkpoints/step-000000000160/manifest.ckpt")));
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 0);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

// ---- killed at the end of a job whose weights are with the workers

class WeightsPointTest : public CoordinatorPointTest {
 protected:
  void SetUp() override {
    CoordinatorPointTest::SetUp();
    fewest_ports_ = 1;
    EditJob("epochs: 40", "epochs: 10");
  }
};

INSTANTIATE_TEST_SUITE_P(Points, WeightsPointTest,
                         ::testing::Values("coordinator-weights-piece:1:kill",
                                           "coordinator-weights-piece:3:kill",
                                           "coordinator-weights-read:1:kill",
                                           "coordinator-weights-saved:1:kill",
                                           "coordinator-weights-piece:2:kill,"
                                           "coordinator-weights-read:1:kill,"
                                           "coordinator-weights-saved:1:kill,"
                                           "coordinator-summary:1:kill"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !isalnum(c); }, '_');
                           return name;
                         });

TEST_P(WeightsPointTest, TheRanksGiveTheWeightsToAnotherOne) {
  int number = 0;
  for (const std::string strategy :
       {"all_reduce: {}", "all_reduce: {}, tensor_parallel: 2"}) {
    SCOPED_TRACE(strategy);
    const std::string job = Read("job.yaml");
    fs::remove_all(Path("fired"));
    fs::create_directory(Path("fired"));
    EditJob("servers: 2, workers: 2",
            absl::StrCat("servers: 0, workers: ",
                         strategy == "all_reduce: {}" ? 2 : 4));
    Write("job.yaml",
          absl::StrCat(Read("job.yaml"), "strategy: {", strategy, "}\n"));
    RunToTheEnd(GetParam(), 0, strategy == "all_reduce: {}" ? 2 : 4);
    ExpectWhole(160, 10);
    EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 0);
    const std::string sha256 = Sha256("run");
    auto train = Train(absl::StrCat("undisturbed", ++number));
    EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
    EXPECT_EQ(sha256, Sha256(absl::StrCat("undisturbed", number)));
    fs::rename(Path("run"), Path(absl::StrCat("run", number)));
    Write("job.yaml", job);
  }
}

TEST_F(TakeoverTest, ACoordinatorThatHasFinishedSaysSoAgainOnlyOnce) {
  EditJob("epochs: 40", "epochs: 2");
  RunToTheEnd("coordinator-summary:1:kill", 2, 2);
  ExpectWhole(32, 2);
  const std::string summary = Read("run/summary.json");
  auto again = Start(CoordinatorAt("127.0.0.1:0"));
  EXPECT_EQ(again->Wait(kSoon), 2);
  EXPECT_THAT(again->output(), HasSubstr("is not empty"));
  EXPECT_EQ(Read("run/summary.json"), summary);
}

}  // namespace
}  // namespace tributary
