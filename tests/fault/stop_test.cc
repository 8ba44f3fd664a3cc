// SPDX-License-Identifier: Apache-2.0
// A run that is stopped at any moment is continued by the command that it
// prints, and ends with the bits of a run that nobody stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/fault/fault_test.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSteps = 640;  // of the fixture's job

class StopTest : public FaultTest {
 protected:
  // The words of the command that continues the run, from the last line that it
  // has printed. Empty: there is no such line.
  static std::vector<std::string> ResumeWords(const RunningProcess& train) {
    std::string text = train.output();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    const std::string last = text.substr(text.rfind('\n') + 1);
    const std::string label = "continue with: ";
    if (last.substr(0, label.size()) != label) return {};
    return absl::StrSplit(last.substr(label.size()), ' ');
  }
  int64_t RecordedSteps(const std::string& run) {
    const std::string lines = Read(run + "/metrics.jsonl");
    return std::count(lines.begin(), lines.end(), '\n');
  }
  // Trains with these words, stops the run after about `steps` steps, and
  // continues it once. Returns the final sha256.
  std::string StopAndContinue(const std::string& run, int64_t steps,
                              const std::vector<std::string>& words) {
    auto train = Train(run, words);
    EXPECT_TRUE(train->WaitForOutput("coordinator", kSoon));
    EXPECT_TRUE(Eventually([&] { return RecordedSteps(run) >= steps; }));
    train->Signal(SIGTERM);
    if (train->Wait(kSoon) == 0) return Sha256(run);  // it ended earlier
    EXPECT_EQ(Summary(run)["status"], "interrupted") << train->output();
    stopped_at_.push_back(Summary(run)["steps"]);
    std::vector<std::string> command = ResumeWords(*train);
    if (command
            .empty()) {  // stopped before its first step: nothing to continue
      EXPECT_EQ(Summary(run)["steps"], 0) << train->output();
      EXPECT_THAT(train->output(), HasSubstr("there is no checkpoint"));
      command = {"tributary", "train", "job.yaml"};
      command.insert(command.end(), words.begin(), words.end());
    }
    EXPECT_EQ(Summary(run)["checkpoint_step"], stopped_at_.back());
    const std::string resumed = run + "-resumed";
    command.insert(command.end(), {"--run-dir", resumed});
    auto second = Start(command);
    EXPECT_EQ(second->Wait(kSoon), 0) << second->output();
    EXPECT_EQ(Summary(resumed)["start_step"], stopped_at_.back());
    return Sha256(resumed);
  }

  std::vector<int64_t> stopped_at_;
};

TEST_F(StopTest, TwentyRandomMomentsOfARunWithServers) {
  const std::string undisturbed = Undisturbed();
  std::mt19937 random(15);
  for (int i = 0; i < 20; ++i) {
    const int64_t steps =
        std::uniform_int_distribution<int64_t>(0, kSteps * 3 / 4)(random);
    EXPECT_EQ(StopAndContinue(absl::StrCat("run-", i), steps, {}), undisturbed)
        << "stopped after about " << steps << " steps";
  }
  EXPECT_GE(stopped_at_.size(), 10u) << "most runs must be stopped in time";
}

TEST_F(StopTest, OtherStrategies) {
  const std::vector<std::vector<std::string>> strategies = {
      {"--set", "strategy={all_reduce: {}}"},
      {"--set", "strategy={all_reduce: {sharded: true}}"},
      {"--set", "strategy={data_parallel: {}}"},
      {"--set", "strategy.parameter_server.wire=int8"},
      {"--set", "strategy={all_reduce: {}, pipeline_parallel: {stages: 2}}"},
      {"--set", "strategy={parameter_server: {}, tensor_parallel: 2}"},
      {"--set", "checkpoint.every_steps=50"},
  };
  for (size_t i = 0; i < strategies.size(); ++i) {
    const std::string whole = absl::StrCat("whole-", i);
    auto train = Train(whole, strategies[i]);
    ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
    EXPECT_EQ(StopAndContinue(absl::StrCat("run-", i), 40, strategies[i]),
              Sha256(whole))
        << strategies[i].back();
  }
}

TEST_F(StopTest, StoppedTwice) {
  auto train = Train("run");
  ASSERT_TRUE(train->WaitForOutput("coordinator", kSoon));
  ASSERT_TRUE(Eventually([&] { return RecordedSteps("run") >= 50; }));
  train->Signal(SIGINT);
  ASSERT_EQ(train->Wait(kSoon), 130) << train->output();
  std::vector<std::string> command = ResumeWords(*train);
  ASSERT_THAT(command, Not(::testing::IsEmpty()));
  command.insert(command.end(), {"--run-dir", "second"});
  auto second = Start(command);
  ASSERT_TRUE(second->WaitForOutput("coordinator", kSoon));
  second->Signal(SIGINT);  // perhaps before a step: the first one's checkpoint
  ASSERT_EQ(second->Wait(kSoon), 130) << second->output();
  command = ResumeWords(*second);
  ASSERT_THAT(command, Not(::testing::IsEmpty())) << second->output();
  command.insert(command.end(), {"--run-dir", "third"});
  auto third = Start(command);
  EXPECT_EQ(third->Wait(kSoon), 0) << third->output();
  EXPECT_EQ(Sha256("third"), Undisturbed());
}

TEST_F(StopTest, ARunThatHasEndedIsTrainedOn) {
  auto train = Train("run", {"--set", "training.epochs=2"});
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(ResumeWords(*train), ::testing::IsEmpty());
  EXPECT_EQ(Summary("run")["checkpoint_step"], 32);
  auto longer = Start({"tributary", "train", "--resume", "run", "--run-dir",
                       "longer", "--set", "training.epochs=40"});
  EXPECT_EQ(longer->Wait(kSoon), 0) << longer->output();
  EXPECT_EQ(Sha256("longer"), Undisturbed());
}

// Sends signals as timeout(1), a closed terminal and batch systems do.
TEST_F(StopTest, SignalsThatAreRepeatedAtOnceAndThoseOfAnEndLeaveACheckpoint) {
  const std::vector<std::vector<int>> all = {
      {SIGTERM, SIGTERM}, {SIGINT, SIGTERM}, {SIGHUP, SIGHUP, SIGCONT},
      {SIGUSR1},          {SIGUSR2},         {SIGCONT, SIGTERM, SIGHUP}};
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string run = absl::StrCat("run-", i);
    auto train = Train(run, {"--set", "training.epochs=100000"});
    ASSERT_TRUE(train->WaitForOutput("coordinator", kSoon));
    ASSERT_TRUE(Eventually([&] { return RecordedSteps(run) >= 5; }));
    for (int signal : all[i]) train->Signal(signal);
    // The kernel chooses which of several pending signals is the first.
    EXPECT_GT(train->Wait(kSoon), 128) << i << train->output();
    EXPECT_THAT(ResumeWords(*train), Not(::testing::IsEmpty())) << i;
    EXPECT_GT(Summary(run)["checkpoint_step"], 0) << i;
  }
}

TEST_F(StopTest, SwitchedOff) {
  auto train = Train("run", {"--set", "checkpoint.at_end=false"});
  ASSERT_TRUE(train->WaitForOutput("coordinator", kSoon));
  ASSERT_TRUE(Eventually([&] { return RecordedSteps("run") >= 5; }));
  train->Signal(SIGTERM);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGTERM);
  EXPECT_THAT(train->output(), HasSubstr("there is no checkpoint to continue"));
  EXPECT_EQ(Summary("run")["checkpoint_step"], 0);
}

}  // namespace
}  // namespace tributary
