// SPDX-License-Identifier: Apache-2.0
// Coordinators that are killed and restarted with the same command, and two
// coordinators on one run directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/member/coordinator_client.h"
#include "tests/fault/takeover/takeover_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

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

// Without evaluations, no step needs a coordinator.
TEST_F(TakeoverTest, TrainingGoesOnForLongerThanALeaseWithoutACoordinator) {
  EditJob(
      "  test: {synthetic: {kind: mlp_teacher, rows: 200, first_row: "
      "1000000}}\n",
      "");
  std::string address;
  auto coordinator =
      Coordinate("run", &address, {"--metrics-listen", "127.0.0.1:0"});
  // The delay makes 640 steps outlast the time without a coordinator.
  auto members = StartMembers(address, 2, 2, {"--delay-messages-ms", "20"});
  const auto version = [this] {
    return SumOverServers("run", "tributary_server_max_version") / 2;
  };
  ASSERT_TRUE(Eventually([&] { return version() > 20; }));
  coordinator->Signal(SIGKILL);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGKILL);
  absl::SleepFor(absl::Seconds(4));  // the lease is 3 s
  const double then = version();
  EXPECT_GT(then, 20);
  EXPECT_TRUE(Eventually([&] { return version() > then + 10; }));
  EXPECT_LT(then, 640);
  coordinator = Start(CoordinatorAt(address));
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  ExpectWhole(640, 0);
  EXPECT_EQ(Summary("run")["lost"]["servers"], 0);
  EXPECT_EQ(Summary("run")["lost"]["workers"], 0);
  EXPECT_EQ(Summary("run")["lost"]["rollbacks"], 0);
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

// No other file has the contents of the damaged state.
TEST_F(TakeoverTest, ADamagedStateIsRefusedAndChangesNothing) {
  std::string address;
  auto coordinator = Coordinate("run", &address);
  auto members = StartMembers(address, 2, 2);
  ASSERT_TRUE(coordinator->WaitForOutput("epoch 3/40: test", kSoon));
  coordinator->Signal(SIGKILL);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGKILL);
  const std::string file = "run/coordinator.state";
  const std::string state = Read(file);
  // The first byte is of the checksum, so the state itself can be parsed.
  for (size_t byte : {size_t{0}, state.size() / 2}) {
    std::string damaged = state;
    damaged[byte] ^= 1;
    Write(file, damaged);
    const auto before = Contents();
    auto refused = Start(CoordinatorAt(address));
    EXPECT_EQ(refused->Wait(kSoon), 2) << refused->output();
    EXPECT_THAT(refused->output(), HasSubstr(file + " is damaged"));
    EXPECT_TRUE(Contents() == before);
  }
  Write(file, state);
  auto again = Start(CoordinatorAt(address));
  EXPECT_EQ(again->Wait(kSoon), 0) << again->output();
  for (auto& member : members) {
    EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
  }
  ExpectWhole(640, 40);
  EXPECT_EQ(Sha256("run"), Undisturbed());
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

// Terms protect a job when the lock has no effect, as on a machine cut off.
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

}  // namespace
}  // namespace tributary
