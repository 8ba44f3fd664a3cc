// SPDX-License-Identifier: Apache-2.0
// Coordinators that die at a failpoint and are restarted with the same command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fault/takeover/takeover_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// ---- killed at a place, with servers

class CoordinatorPointTest : public TakeoverTest,
                             public ::testing::WithParamInterface<const char*> {
};

INSTANTIATE_TEST_SUITE_P(
    Points, CoordinatorPointTest,
    ::testing::Values(
        // Every save of a run's state before it trains.
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

// ---- killed at the end of a job whose workers have the weights

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
