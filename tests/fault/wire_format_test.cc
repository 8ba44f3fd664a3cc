// SPDX-License-Identifier: Apache-2.0
// Encoded gradients and weights: a run ends with the same bits, whatever the
// number of servers and however often its processes are killed.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"

namespace tributary {
namespace {

class WireFormatTest : public FaultTest,
                       public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    EditJob("cluster:", absl::StrCat("strategy: {parameter_server: {",
                                     GetParam(), "}}\ncluster:"));
    EditJob("epochs: 40", "epochs: 10");
  }
  // Expects bits that differ from float32's but not by the number of servers.
  void ExpectBitsOfTheFormat() {
    const std::string bits = BitsWith(1);
    EXPECT_EQ(BitsWith(2), bits);
    EXPECT_EQ(BitsWith(3), bits);
    EditJob(GetParam(), "wire: float32");
    EXPECT_NE(Undisturbed(), bits) << "the job was not encoded";
  }
  std::string BitsWith(int servers) {
    const std::string run = absl::StrCat("servers", servers);
    auto train =
        Train(run, {"--set", absl::StrCat("cluster.servers=", servers)});
    EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
    return Sha256(run);
  }
};

TEST_P(WireFormatTest, TheBitsDependOnTheFormatAndNotOnTheServers) {
  ExpectBitsOfTheFormat();
}

TEST_P(WireFormatTest, ALostWorkerAndALostServerLeaveTheBits) {
  const std::vector<std::string> words = {"--set", "checkpoint.every_steps=10"};
  SetFailpoints("worker-mid-push:30:kill,server-complete:100:kill");
  auto train = Train("run", words);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_TRUE(Fired("worker-mid-push:30"));
  EXPECT_TRUE(Fired("server-complete:100"));
  SetFailpoints("");
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

TEST_P(WireFormatTest, AResumedRunEndsWithTheSameBits) {
  auto train = Train("run", {"--set", "checkpoint.every_steps=10"});
  ASSERT_NE(WaitForCheckpoint(Path("run/checkpoints")), "");
  train->Signal(SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL);
  auto resumed = Start({"tributary", "train", "--resume", "run", "--servers",
                        "3", "--run-dir", "resumed"});
  EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_EQ(Sha256("resumed"), Undisturbed());
}

INSTANTIATE_TEST_SUITE_P(Formats, WireFormatTest,
                         ::testing::Values("wire: float16",
                                           "wire: bfloat16, "
                                           "weights_wire: bfloat16",
                                           "wire: one_bit, "
                                           "error_feedback: false"),
                         [](const auto& info) {
                           return info.index == 0   ? "Float16"
                                  : info.index == 1 ? "Bfloat16BothWays"
                                                    : "OneBitWithoutFeedback";
                         });

class ErrorFeedbackWireTest : public WireFormatTest {};

TEST_P(ErrorFeedbackWireTest, TheBitsDependOnTheFormatAndNotOnTheServers) {
  ExpectBitsOfTheFormat();
}

TEST_P(ErrorFeedbackWireTest, WithoutFeedbackTheBitsAreOthers) {
  auto train = Train(
      "without", {"--set", "strategy.parameter_server.error_feedback=false"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_NE(Sha256("without"), Undisturbed());
}

INSTANTIATE_TEST_SUITE_P(Formats, ErrorFeedbackWireTest,
                         ::testing::Values("wire: int8",
                                           "wire: top_k, top_k_fraction: 0.1",
                                           "wire: one_bit"),
                         [](const auto& info) {
                           return info.index == 0   ? "Int8"
                                  : info.index == 1 ? "TopK"
                                                    : "OneBit";
                         });

}  // namespace
}  // namespace tributary
