// SPDX-License-Identifier: Apache-2.0
// Processes that are killed at every point of writing a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/fault/checkpoint_fault_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ShardFilePointTest : public CheckpointFaultTest,
                           public ::testing::WithParamInterface<const char*> {};

TEST_P(ShardFilePointTest, AServerThatIsKilledThereCostsNothing) {
  const std::string point = absl::StrCat(GetParam(), ":3");
  SetFailpoints(point + ":kill");
  auto train = Train("run", {"--set", "checkpoint.every_steps=16"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_TRUE(Fired(point));
  SetFailpoints("");
  EXPECT_EQ(Summary("run")["lost"]["servers"], 1);
  EXPECT_EQ(Sha256("run"), Undisturbed());
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
  EXPECT_THAT(Verify("run").output, Not(HasSubstr("incomplete")));
  EXPECT_EQ(Folders("run/checkpoints", true).size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Points, ShardFilePointTest,
                         ::testing::Values("shard-file-middle",
                                           "shard-file-before-rename",
                                           "shard-file-after-rename"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

class ManifestPointTest : public CheckpointFaultTest,
                          public ::testing::WithParamInterface<const char*> {};

TEST_P(ManifestPointTest, TheRunIsResumedFromAWholeOne) {
  const std::string point = absl::StrCat(GetParam(), ":3");
  SetFailpoints(point + ":kill");
  auto train = Train("run", In("shared", 16));
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL) << train->output();
  EXPECT_TRUE(Fired(point));
  SetFailpoints("");
  EXPECT_EQ(Verify("shared").exit_code, 0)
      << "what was whole stays whole: " << Verify("shared").output;
  auto resumed = Start(
      {"tributary", "train", "--resume", "shared", "--run-dir", "resumed"});
  EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_GE(Summary("resumed")["start_step"], 32);
  EXPECT_EQ(Sha256("resumed"), Undisturbed());
  EXPECT_EQ(Folders("shared", true).size(), 3u);
  EXPECT_THAT(Folders("shared", false), IsEmpty());
}

TEST_P(ManifestPointTest, AnotherCoordinatorGoesOn) {
  const std::string point = absl::StrCat(GetParam(), ":3");
  Write("job.yaml", Read("job.yaml") + "checkpoint: {every_steps: 16}\n");
  SetFailpoints(point + ":kill");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  SetFailpoints("");
  std::vector<std::unique_ptr<RunningProcess>> members;
  for (const char* program : {"tributary-server", "tributary-worker"}) {
    for (int i = 0; i < 2; ++i) {
      members.push_back(Start({program, "--coordinator", address}));
    }
  }
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGKILL) << coordinator->output();
  EXPECT_TRUE(Fired(point));
  auto again = Start({"tributary-coordinator", "--job", "job.yaml", "--run-dir",
                      "run", "--listen", address});
  EXPECT_EQ(again->Wait(kSoon), 0) << again->output();
  for (auto& member : members) EXPECT_EQ(member->Wait(kSoon), 0);
  EXPECT_EQ(Sha256("run"), Undisturbed());
  EXPECT_EQ(Folders("run/checkpoints", true).size(), 3u);
  EXPECT_THAT(Folders("run/checkpoints", false), IsEmpty());
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
}

INSTANTIATE_TEST_SUITE_P(Points, ManifestPointTest,
                         ::testing::Values("manifest-before-rename",
                                           "manifest-after-rename"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace tributary
