// SPDX-License-Identifier: Apache-2.0
// `tributary stop`, `list` and `logs` about real jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/fault/why_fixture.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Runs `tributary stop`, which does what Ctrl-C does.
class StopCommandTest : public WhyTest {
 protected:
  std::unique_ptr<RunningProcess> Stop(
      const std::vector<std::string>& words = {}) {
    std::vector<std::string> command = {"tributary", "stop"};
    command.insert(command.end(), words.begin(), words.end());
    return Start(command);
  }
};

TEST_F(StopCommandTest, TheRunIsContinuedFromWhatItLeaves) {
  EditJob("epochs: 100000", "epochs: 400");
  auto train = Begin();
  auto stop = Stop({"job", "--checkpoint"});
  EXPECT_EQ(stop->Wait(kSoon), 0) << stop->output();
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGINT) << train->output();
  const int64_t step = Summary("job")["steps"];
  EXPECT_EQ(Summary("job")["status"], "interrupted");
  EXPECT_EQ(Summary("job")["checkpoint_step"], step);
  EXPECT_THAT(stop->output(),
              AllOf(HasSubstr("leaves a checkpoint of it"),
                    HasSubstr("continue with: tributary train --resume ")));
  EXPECT_THAT(train->output(), HasSubstr("as asked: tributary stop on "));
  auto again = Stop({"job"});
  EXPECT_EQ(again->Wait(kSoon), 0) << again->output();
  EXPECT_THAT(again->output(), HasSubstr("nothing to stop"));
  const std::string command = Summary("job")["resume_command"];
  EXPECT_THAT(stop->output(), HasSubstr(command));
  std::vector<std::string> words = absl::StrSplit(command, ' ');
  words.insert(words.end(), {"--run-dir", "resumed"});
  auto resumed = Start(words);
  EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_EQ(Sha256("resumed"), Undisturbed());
}

TEST_F(StopCommandTest, AJobWithoutACheckpointAtItsEndGoesOn) {
  auto train = Begin({"--set", "checkpoint.at_end=false"});
  auto refused = Stop({"job", "--checkpoint"});
  EXPECT_EQ(refused->Wait(kSoon), 1);
  EXPECT_THAT(refused->output(), HasSubstr("checkpoint.at_end is false"));
  ExpectAdvances();
  auto stop = Stop({"job", "--no-wait"});
  EXPECT_EQ(stop->Wait(kSoon), 0) << stop->output();
  EXPECT_THAT(stop->output(), HasSubstr("leaves no checkpoint of it"));
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGINT) << train->output();
}

TEST_F(StopCommandTest, AWaitThatIsTooLongNamesWhatHoldsTheJobUp) {
  auto train = Begin();
  const pid_t pid = PidOf("job", "worker 1");
  kill(pid, SIGSTOP);
  auto stop = Stop({"job", "--timeout", "1"});
  EXPECT_EQ(stop->Wait(kSoon), 1);
  EXPECT_THAT(stop->output(),
              AllOf(HasSubstr("has not ended within 1s"),
                    HasSubstr("waits for worker 1 "), HasSubstr("SIGSTOP")));
  kill(pid, SIGCONT);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGINT) << train->output();
}

TEST_F(StopCommandTest, BeforeTheFirstStep) {
  fewest_ports_ = 1;
  auto coordinator = Coordinate("job", &address_);
  auto stop = Stop({"--coordinator", address_});
  EXPECT_EQ(stop->Wait(kSoon), 0) << stop->output();
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGINT) << coordinator->output();
  EXPECT_EQ(Summary("job")["status"], "interrupted");
}

TEST_F(StopCommandTest, ACoordinatorThatIsKilledMeanwhileIsNoSuccess) {
  auto train = Begin();
  // The job cannot end as long as a worker is stopped.
  const pid_t worker = PidOf("job", "worker 1");
  kill(worker, SIGSTOP);
  auto stop = Stop({"job", "--checkpoint"});
  EXPECT_TRUE(stop->WaitForOutput("leaves a checkpoint of it", kSoon));
  train->Signal(SIGKILL);
  train->Wait(kSoon);
  EXPECT_EQ(stop->Wait(kSoon), 1) << stop->output();
  EXPECT_THAT(stop->output(),
              AllOf(HasSubstr("without a summary, so it was killed"),
                    HasSubstr("that was asked for may be missing")));
  kill(worker, SIGKILL);
}

TEST_F(StopCommandTest, ListAndLogsKnowTheJob) {
  auto train = Begin();
  auto list = Start({"tributary", "list"});
  EXPECT_EQ(list->Wait(kSoon), 0);
  EXPECT_THAT(list->output(), AllOf(HasSubstr("fault"), HasSubstr("running"),
                                    HasSubstr(Path("job"))));
  auto logs = Start({"tributary", "logs", "fault", "--role", "server"});
  EXPECT_EQ(logs->Wait(kSoon), 0);
  EXPECT_THAT(logs->output(), AllOf(HasSubstr("server-0: serving shard 0"),
                                    HasSubstr("server-1: serving shard 1")));
  auto follow = Start({"tributary", "logs", "--follow"});
  EXPECT_TRUE(follow->WaitForOutput("the job is running", kSoon));
  End(*train);
  EXPECT_EQ(follow->Wait(kSoon), 0);
  EXPECT_THAT(follow->output(), HasSubstr("the job is done"));
  auto empty = Start({"tributary", "list"});
  EXPECT_EQ(empty->Wait(kSoon), 0);
  EXPECT_THAT(empty->output(), HasSubstr("no job of yours runs"));
}

TEST_F(StopCommandTest, AJobWithCertificatesOfItsOwnIsListed) {
  fewest_ports_ = 1;
  auto made = Start({"tributary", "certificates", "--out", Path("tls")});
  ASSERT_EQ(made->Wait(kSoon), 0) << made->output();
  auto coordinator =
      Coordinate("job", &address_, {"--tls", Path("tls/coordinator")});
  auto list = Start({"tributary", "list"});
  EXPECT_EQ(list->Wait(kSoon), 0);
  EXPECT_THAT(list->output(),
              HasSubstr("answers only with a certificate: tributary list "
                        "--tls FOLDER"));
  list = Start({"tributary", "list", "--tls", Path("tls/operator")});
  EXPECT_EQ(list->Wait(kSoon), 0);
  EXPECT_THAT(list->output(), HasSubstr("  waiting\n"));
  coordinator->Signal(SIGTERM);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGTERM) << coordinator->output();
}

TEST_F(StopCommandTest, AKilledJobIsListedOnce) {
  auto train = Begin();
  train->Signal(SIGKILL);
  train->Wait(kSoon);
  auto list = Start({"tributary", "list"});
  EXPECT_EQ(list->Wait(kSoon), 0);
  EXPECT_THAT(list->output(), HasSubstr("has ended without a summary"));
  auto empty = Start({"tributary", "list"});
  EXPECT_EQ(empty->Wait(kSoon), 0);
  EXPECT_THAT(empty->output(), HasSubstr("no job of yours runs"));
}

}  // namespace
}  // namespace tributary
