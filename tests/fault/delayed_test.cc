// SPDX-License-Identifier: Apache-2.0
// A run whose gradients are one step late (sync: {bsp: {delay: 1}}) and that
// loses processes ends with the same bits as a run without losses.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"

namespace tributary {
namespace {

// With late gradients the job's momentum diverges.
const std::vector<std::string> kDelayed = {
    "--set", "strategy.parameter_server.sync={bsp: {delay: 1}}",
    "--set", "training.optimizer={adam: {learning_rate: 0.003}}",
    "--set", "checkpoint.every_steps=10"};

using DelayedTest = FaultTest;

class DelayedPointTest : public FaultTest,
                         public ::testing::WithParamInterface<const char*> {};

TEST_P(DelayedPointTest, TheBitsStay) {
  const std::string point = absl::StrCat(GetParam(), ":100");
  SetFailpoints(point + ":kill");
  auto train = Train("run", kDelayed);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_TRUE(Fired(point));
  const nlohmann::json lost = Summary("run")["lost"];
  EXPECT_EQ(lost["workers"].get<int>() + lost["servers"].get<int>(), 1);
  SetFailpoints("");
  EXPECT_EQ(Sha256("run"), Undisturbed(kDelayed));
}

INSTANTIATE_TEST_SUITE_P(
    Points, DelayedPointTest,
    ::testing::Values("worker-before-compute", "worker-computed",
                      "worker-mid-push", "worker-pushed", "worker-answered",
                      "server-received", "server-complete", "server-answer"),
    [](const auto& info) {
      std::string name = info.param;
      name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
      return name;
    });

TEST_F(DelayedTest, ResumedOnAnotherNumberOfServersTheBitsStay) {
  auto train = Train("run", kDelayed);
  ASSERT_TRUE(train->WaitForOutput("epoch 3/40: test", kSoon));
  ASSERT_NE(WaitForCheckpoint(Path("run/checkpoints")), "");
  train->Signal(SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL);
  ExpectNoProcess();
  auto resumed = Start({"tributary", "train", "--resume", "run", "--servers",
                        "3", "--run-dir", "resumed"});
  EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_GE(Summary("resumed")["start_step"], 10);
  EXPECT_EQ(Sha256("resumed"), Undisturbed(kDelayed));
}

// A checkpoint without the weights of the step before cannot be gone on from.
TEST_F(DelayedTest, ADelayIsNotChangedByAResume) {
  auto train = Train("run", {"--set", "training.epochs=2"});
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  auto resumed = Start({"tributary", "train", "--resume", "run", "--run-dir",
                        "resumed", "--set", "training.epochs=3", "--set",
                        "strategy.parameter_server.sync={bsp: {delay: 1}}"});
  EXPECT_EQ(resumed->Wait(kSoon), 2);
  EXPECT_NE(resumed->output().find("the checkpoint is of a job with delay: 0, "
                                   "got 1"),
            std::string::npos)
      << resumed->output();
}

}  // namespace
}  // namespace tributary
