// SPDX-License-Identifier: Apache-2.0
// `tributary checkpoint take` about real jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/fault/why_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

class TakeCheckpointTest : public WhyTest {
 protected:
  struct Taken {
    int64_t step = 0;
    std::string folder;
  };
  // Takes a checkpoint of the job in the run directory `job`.
  Taken Take() {
    auto take = Start({"tributary", "checkpoint", "take", "job"});
    EXPECT_EQ(take->Wait(kSoon), 0) << take->output();
    Taken taken;
    char folder[1024] = "";
    EXPECT_EQ(sscanf(take->output().c_str(), "checkpoint of step %ld: %1023s",
                     &taken.step, folder),
              2)
        << take->output();
    taken.folder = folder;
    return taken;
  }
};

// Killing a server after a checkpoint costs only the steps since then.
TEST_F(TakeCheckpointTest, TheRunGoesOnFromItWithTheSameResult) {
  EditJob("epochs: 100000", "epochs: 400");
  auto train = Begin();
  const Taken first = Take();
  EXPECT_GT(first.step, 20);
  const Taken second = Take();
  EXPECT_GE(second.step, first.step);
  kill(PidOf("job", "server 1"), SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_EQ(Sha256("job"), Undisturbed());
  EXPECT_THAT(train->output(),
              HasSubstr(absl::StrCat("checkpoint ", second.folder)));
}

// With each strategy, the checkpoint is that of a run which ends at its step.
struct Way {
  const char* label;
  std::vector<std::string> words;
};

class TakeCheckpointWithTest : public TakeCheckpointTest,
                               public ::testing::WithParamInterface<Way> {};

TEST_P(TakeCheckpointWithTest, IsThatOfARunWhichEndsThere) {
  const std::vector<std::string>& words = GetParam().words;
  auto train = Begin(words);
  const Taken taken = Take();
  End(*train);
  EditJob("epochs: 100000", absl::StrCat("steps: ", taken.step));
  auto reference = Train("reference", words);
  EXPECT_EQ(reference->Wait(kSoon), 0) << reference->output();
  auto diff =
      Start({"tributary", "checkpoint", "diff", taken.folder, "reference"});
  diff->Wait(kSoon);
  EXPECT_THAT(diff->output(), HasSubstr("different: 0 of 8 tensors"));
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, TakeCheckpointWithTest,
    ::testing::Values(
        Way{"all_reduce", {"--set", "strategy={all_reduce: {}}"}},
        Way{"local_sgd",
            {"--set",
             "strategy.parameter_server.sync={local_sgd: {period: 3}}"}},
        Way{"residuals",
            {"--set",
             "strategy={parameter_server: {wire: top_k, "
             "top_k_fraction: 0.05}}"}}),
    [](const auto& info) { return std::string(info.param.label); });

TEST_F(TakeCheckpointTest, WithoutABarrierItIsIntact) {
  auto train = Begin({"--set", "strategy.parameter_server.sync={async: {}}"});
  const Taken taken = Take();
  End(*train);
  auto verify = Start({"tributary", "checkpoint", "verify", taken.folder});
  EXPECT_EQ(verify->Wait(kSoon), 0) << verify->output();
}

TEST_F(TakeCheckpointTest, AWaitThatIsTooLongSaysForWhat) {
  auto train = Begin();
  const pid_t pid = PidOf("job", "worker 1");
  kill(pid, SIGSTOP);
  auto take =
      Start({"tributary", "checkpoint", "take", "job", "--timeout", "1"});
  EXPECT_EQ(take->Wait(kSoon), 1);
  EXPECT_THAT(take->output(),
              HasSubstr("has taken no checkpoint within 1s: it waits for "
                        "worker 1 to "));
  kill(pid, SIGCONT);
  ExpectAdvances();
  End(*train);
  auto late = Start({"tributary", "checkpoint", "take", "job"});
  EXPECT_EQ(late->Wait(kSoon), 1);
  EXPECT_THAT(late->output(), HasSubstr("nothing to save"));
}

}  // namespace
}  // namespace tributary
