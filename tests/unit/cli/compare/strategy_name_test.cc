// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/strategy_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job_file.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;
constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

TEST(StrategyNameTest, ParameterServerTakesItsSync) {
  const std::pair<const char*, const char*> kSyncs[] = {
      {"parameter_server", "bsp"},
      {"parameter_server:bsp", "bsp"},
      {"parameter_server:async", "async"},
      {"parameter_server:ssp:0", "{ssp: {staleness: 0}}"},
      {"parameter_server:local_sgd:8", "{local_sgd: {period: 8}}"}};
  for (const auto& [name, sync] : kSyncs) {
    const auto choice = ParseStrategy(name);
    ASSERT_TRUE(choice.ok()) << name << ": " << choice.status();
    EXPECT_THAT(
        choice->overrides,
        ElementsAre(std::string("strategy.parameter_server.sync=") + sync));
    EXPECT_TRUE(choice->has_servers);
    EXPECT_EQ(choice->model_ranks, 1);
  }
  EXPECT_EQ(ParseStrategy("parameter_server:bsp")->name, "parameter_server");
}

TEST(StrategyNameTest, WrongArgumentsAreToldWhatIsWanted) {
  for (const char* name :
       {"parameter_server:ssp", "parameter_server:ssp:x",
        "parameter_server:ssp:-1", "parameter_server:async:2",
        "parameter_server:local_sgd:0", "parameter_server:bsp:1",
        "parameter_server:", "parameter_server:sharded"}) {
    EXPECT_THAT(ParseStrategy(name),
                StatusIs(kRefused, "wanted parameter_server[:bsp|"))
        << name;
  }
}

TEST(StrategyNameTest, UnknownNamesGetTheKnownOnes) {
  EXPECT_THAT(ParseStrategy("gossip"),
              StatusIs(kRefused,
                       "strategy \"gossip\": there is no \"gossip\"; known are "
                       "single, parameter_server"));
  EXPECT_THAT(ParseStrategy(""), StatusIs(kRefused, "there is no \"\""));
  EXPECT_THAT(ParseStrategy("parameter_server+"),
              StatusIs(kRefused, "there is no \"\""));
}

TEST(StrategyNameTest, EveryKindMayStandAlone) {
  for (const char* name : {"data_parallel", "tensor_parallel:2",
                           "pipeline_parallel:2:gpipe", "all_reduce"}) {
    EXPECT_TRUE(ParseStrategy(name).ok()) << name;
  }
}

TEST(StrategyNameTest, TwoWaysToShareTheDataAreRefused) {
  EXPECT_THAT(ParseStrategy("parameter_server+parameter_server:async"),
              StatusIs(kRefused, "two ways to share the data"));
}

TEST(StrategyNameTest, AllReduceIsShardedOnDemand) {
  EXPECT_THAT(ParseStrategy("all_reduce")->overrides,
              ElementsAre("strategy.all_reduce.sharded=false"));
  EXPECT_THAT(ParseStrategy("all_reduce:sharded")->overrides,
              ElementsAre("strategy.all_reduce.sharded=true"));
  EXPECT_FALSE(ParseStrategy("all_reduce:sharded")->has_servers);
  EXPECT_THAT(ParseStrategy("all_reduce:ring"),
              StatusIs(kRefused, "wanted all_reduce[:sharded]"));
}

TEST(StrategyNameTest, CutsMultiplyIntoTheRanksOfAModel) {
  const auto mesh = ParseStrategy(
      "tensor_parallel:2+pipeline_parallel:3:gpipe:6+parameter_server");
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  EXPECT_EQ(mesh->model_ranks, 6);
  EXPECT_TRUE(mesh->has_servers);
  for (const char* wrong :
       {"tensor_parallel", "tensor_parallel:1", "pipeline_parallel:2:zigzag",
        "pipeline_parallel:2:gpipe:0"}) {
    EXPECT_THAT(ParseStrategy(wrong), StatusIs(kRefused, "wanted "));
  }
}

constexpr char kStrategiesJob[] = R"(name: small
model: {sequential: [{linear: {in: 20, out: 1}}]}
data: {train: {synthetic: {kind: linear, rows: 100}}, batch_size: 10}
training: {steps: 5, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
)";

TEST(StrategyNameTest, AJobsOwnStrategyHasTheNameThatMakesIt) {
  std::vector<const char*> names = {"parameter_server",
                                    "parameter_server:async",
                                    "parameter_server:ssp:3",
                                    "parameter_server:local_sgd:4",
                                    "all_reduce",
                                    "all_reduce:sharded",
                                    "data_parallel"};
  for (const char* name : names) {
    const auto choice = ParseStrategy(name);
    ASSERT_TRUE(choice.ok()) << choice.status();
    std::vector<std::string> overrides = choice->overrides;
    overrides.push_back(choice->has_servers ? "cluster.servers=1"
                                            : "cluster.servers=0");
    const auto job = ParseJob(kStrategiesJob, "job.yaml", overrides);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(StrategyNameOf(*job), name);
  }
}

TEST(StrategyNameTest, HelpNamesWhatTheSchemaHas) {
  const std::string help = StrategyHelp();
  EXPECT_THAT(help, HasSubstr("single"));
  EXPECT_THAT(help, HasSubstr("parameter_server[:bsp|"));
  EXPECT_THAT(help, HasSubstr("data_parallel"));
}

}  // namespace
}  // namespace tributary
