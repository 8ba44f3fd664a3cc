// SPDX-License-Identifier: Apache-2.0
// `tributary run` with a program made for this test: real processes, which
// train through real servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/files/safetensors.h"
#include "common/job/job_file.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::kSoon;
using ::testing::Not;
using testing::Program;
using testing::RunningProcess;

constexpr char kSgd[] = "training.optimizer={sgd: {learning_rate: 0.5}}";

// Finds the coordinator's address in its output.
std::string AddressIn(const std::string& output) {
  const size_t begin = output.find("127.0.0.1:");
  return begin == std::string::npos
             ? ""
             : output.substr(begin, output.find(' ', begin) - begin);
}

class RunTest : public testing::TemporaryFolderTest {
 protected:
  // Runs the program with `words` under `tributary run` with these options.
  std::unique_ptr<RunningProcess> Start(const std::vector<std::string>& options,
                                        const std::vector<std::string>& words,
                                        const std::string& run = "run") {
    std::vector<std::string> command = {Program("tributary"), "run",
                                        "--run-dir", run};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back(Program("program_rank"));
    command.insert(command.end(), words.begin(), words.end());
    return RunningProcess::Start({.command = command, .folder = folder()});
  }
  json Summary() { return json::parse(Read("run/summary.json")); }
  v1::JobSpec Job() {
    const auto job = ReadJobFile(Path("run/job.yaml"));
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : v1::JobSpec();
  }
  // Returns the weight that the run has saved.
  float Weight() {
    const auto weights = ReadSafetensors(Path("run/weights.safetensors"),
                                         {{.name = "w", .shape = {4}}});
    EXPECT_TRUE(weights.ok()) << weights.status();
    return weights.ok() ? (*weights)[0][0] : 0;
  }
};

TEST_F(RunTest, AProgramTrainsThroughTheServersUntilItEnds) {
  auto run = Start({"--servers", "2", "--workers", "3"}, {kSgd, "steps", "6"});
  EXPECT_EQ(run->Wait(kSoon), 0) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("2 servers, 3 workers, coordinator"));
  EXPECT_THAT(run->output(), HasSubstr("step 6 of the program: weight -3\n"));
  // The program does not count its samples.
  EXPECT_THAT(run->output(), ContainsRegex("done: 6 steps in .* steps/s\n"));
  EXPECT_THAT(run->output(), Not(HasSubstr("9007199254740991")));
  EXPECT_THAT(Read("run/logs/worker-2.log"),
              HasSubstr("step 6 of the program: weight -3\n"));
  EXPECT_EQ(Weight(), -3.0f);  // six steps of 0.5 times the gradient 1
  EXPECT_EQ(Summary()["status"], "done");
  EXPECT_EQ(Summary()["steps"], 6);
  EXPECT_TRUE(Summary()["total_steps"].is_null());
  EXPECT_TRUE(Job().has_program());
  EXPECT_EQ(Job().name(), "program_rank");
  EXPECT_EQ(Job().training().optimizer().sgd().learning_rate(), 0.5);
}

TEST_F(RunTest, AKnownNumberOfStepsIsShownAndTheJobFileCounts) {
  Write("job.yaml",
        "name: mine\ncluster: {servers: 2, workers: 2}\n"
        "training:\n  optimizer: {sgd: {momentum: 0.5}}\n");
  auto run = Start({"--job", "job.yaml"}, {kSgd, "steps", "4", "declare", "4"});
  EXPECT_EQ(run->Wait(kSoon), 0) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("mine: 2 servers, 2 workers"));
  EXPECT_THAT(run->output(), HasSubstr("done: 4 of 4 steps in"));
  EXPECT_EQ(Job().training().optimizer().sgd().momentum(), 0.5);
  EXPECT_EQ(Summary()["total_steps"], 4);
}

TEST_F(RunTest, AContradictionEndsTheRunWithBothValues) {
  Write("job.yaml", "training: {optimizer: {sgd: {learning_rate: 2}}}\n");
  auto run = Start({"--job", "job.yaml"}, {kSgd});
  EXPECT_EQ(run->Wait(kSoon), 1);
  EXPECT_THAT(run->output(),
              HasSubstr("worker-0 exited with code 1; its log ends: the "
                        "program's training.optimizer={sgd: {learning_rate: "
                        "0.5}}: training.optimizer.sgd.learning_rate is 2 "
                        "(job.yaml:1), but the program wants 0.5"));
}

TEST_F(RunTest, ARankThatLeavesBeforeItJoinsEndsTheRunSoon) {
  for (const char* code : {"0", "3"}) {
    auto run = Start({"--workers", "2"}, {kSgd, "exit", code},
                     std::string("run") + code);
    EXPECT_EQ(run->Wait(kSoon), 1) << code;
    EXPECT_THAT(run->output(),
                HasSubstr(std::string("worker-1 exited with code ") + code +
                          "; its log ends: this rank has no data"));
  }
}

// The steps take less time than a heartbeat's interval.
TEST_F(RunTest, ARankThatLeavesEarlyDoesNotHideTheStepsOfTheOthers) {
  auto run = Start(
      {"--servers", "1", "--workers", "2"},
      {kSgd, "checkpoint={every_steps: 15}", "steps", "60", "leave-at", "51"});
  EXPECT_EQ(run->Wait(kSoon), 1) << run->output();
  const json summary = Summary();
  EXPECT_THAT(std::string(summary["message"]),
              HasSubstr("worker-1 exited with code 0"));
  // Rank 1 takes part in step 50 after rank 0 has reported step 49.
  EXPECT_GE(summary["steps"], 49);
  EXPECT_LE(summary["checkpoint_step"], summary["steps"]);
  EXPECT_EQ(summary["final_loss"], 1.0 / summary["steps"].get<double>());
  EXPECT_TRUE(summary["total_steps"].is_null());
  const std::string lines = Read("run/metrics.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), summary["steps"]);
}

TEST_F(RunTest, AResumedRunGoesOnFromItsCheckpoint) {
  // Only one checkpoint, for which the end of the job waits. With steps as
  // quick as these, a checkpoint can be left out while the one before is being
  // written.
  const std::vector<std::string> program = {kSgd, "checkpoint={every_steps: 4}",
                                            "steps"};
  std::vector<std::string> words = program;
  words.push_back("4");
  auto run = Start({"--servers", "2", "--workers", "2"}, words);
  EXPECT_EQ(run->Wait(kSoon), 0) << run->output();
  words.back() = "6";
  run = Start({"--servers", "1", "--resume", "run"}, words, "resumed");
  EXPECT_EQ(run->Wait(kSoon), 0) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("1 server, 2 workers"));
  EXPECT_THAT(run->output(), Not(HasSubstr("step 4 of the program")));
  EXPECT_THAT(run->output(), HasSubstr("step 6 of the program: weight -3\n"));
  run = Start({"--resume", "run"}, words, "run");
  EXPECT_EQ(run->Wait(kSoon), 2) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("run is the run that is resumed"));
}

TEST_F(RunTest, AKilledRankIsStartedAgain) {
  auto run = Start({"--servers", "2", "--workers", "2"},
                   {kSgd, "steps", "5", "die-at", "3"});
  EXPECT_EQ(run->Wait(kSoon), 0) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("worker-1 was killed by signal 9"));
  EXPECT_EQ(Weight(), -2.5f);
  EXPECT_EQ(Summary()["lost"]["workers"], 1);
}

TEST_F(RunTest, InterruptStopsAtACommonStep) {
  auto run = Start({"--workers", "2"}, {kSgd, "steps", "1000000000"});
  ASSERT_TRUE(run->WaitForOutput("step 3 of the program", kSoon));
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(kSoon), 130) << run->output();
  EXPECT_EQ(Summary()["status"], "interrupted");
  EXPECT_LT(Weight(), 0);
}

TEST_F(RunTest, InterruptBeforeTheJobIsKnownEndsTheRun) {
  Write("wait.sh", "#!/bin/sh\necho waiting\nexec sleep 1000\n");
  auto run = RunningProcess::Start(
      {.command = {Program("tributary"), "run", "--run-dir", "run", "/bin/sh",
                   Path("wait.sh")},
       .folder = folder()});
  ASSERT_TRUE(run->WaitForOutput("waiting", kSoon));
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(kSoon), 130);
  EXPECT_THAT(run->output(),
              HasSubstr("stopped before the program said what it trains"));
}

TEST_F(RunTest, ALauncherStartsTheRanksItself) {
  Write("launch.sh",
        "#!/bin/sh\n"
        "test -z \"$TRIBUTARY_RANK\" || exit 9\n"
        "for r in 0 1; do RANK=$r \"$@\" & done\nwait\n");
  auto run = RunningProcess::Start(
      {.command = {Program("tributary"), "run", "--run-dir", "run", "--workers",
                   "2", "--once", "/bin/sh", Path("launch.sh"),
                   Program("program_rank"), kSgd, "steps", "2"},
       .folder = folder()});
  EXPECT_EQ(run->Wait(kSoon), 0) << run->output();
  EXPECT_THAT(Read("run/logs/program.log"),
              HasSubstr("step 2 of the program: weight -1\n"));
  EXPECT_EQ(Weight(), -1.0f);
}

TEST_F(RunTest, PythonStartsAProgramWhoseNameEndsInPy) {
  Write("train.py",
        "import os, sys\n"
        "print('rank', os.environ['TRIBUTARY_RANK'], 'of',\n"
        "      os.environ['WORLD_SIZE'], sys.argv[1:])\n"
        "sys.exit(5)\n");
  auto run = RunningProcess::Start(
      {.command = {Program("tributary"), "run", "--run-dir", "run", "train.py",
                   "--epochs", "3", "--workers"},
       .folder = folder()});
  EXPECT_EQ(run->Wait(kSoon), 1);
  EXPECT_THAT(run->output(), HasSubstr("worker-0 exited with code 5; its log "
                                       "ends: rank 0 of 1 ['--epochs', '3', "
                                       "'--workers']"));
}

// The coordinator, a server and the program are started by hand.
TEST_F(RunTest, ACoordinatorWithoutAJobFileTakesTheProgramsJob) {
  auto coordinator = RunningProcess::Start(
      {.command = {Program("tributary-coordinator"), "--listen", "127.0.0.1:0",
                   "--workers", "1", "--run-dir", "run"},
       .folder = folder()});
  ASSERT_TRUE(coordinator->WaitForOutput(" waits for a program", kSoon));
  const std::string address = AddressIn(coordinator->output());
  auto server = RunningProcess::Start(
      {.command = {Program("tributary-server"), "--coordinator", address,
                   "--listen", "127.0.0.1:0"},
       .folder = folder()});
  auto program = RunningProcess::Start(
      {.command = {Program("program_rank"), kSgd, "steps", "2"},
       .folder = folder(),
       .environment = {"TRIBUTARY_COORDINATOR=" + address}});
  EXPECT_EQ(program->Wait(kSoon), 0) << program->output();
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  EXPECT_EQ(server->Wait(kSoon), 0) << server->output();
  EXPECT_EQ(Weight(), -1.0f);
  EXPECT_EQ(Job().name(), "program");
}

TEST_F(RunTest, ACoordinatorThatIsStartedAgainKnowsTheJob) {
  const auto coordinate = [this](const std::string& listen) {
    return RunningProcess::Start(
        {.command = {Program("tributary-coordinator"), "--listen", listen,
                     "--workers", "1", "--run-dir", "run"},
         .folder = folder()});
  };
  auto coordinator = coordinate("127.0.0.1:0");
  ASSERT_TRUE(coordinator->WaitForOutput(" waits for a program", kSoon));
  const std::string address = AddressIn(coordinator->output());
  auto server = RunningProcess::Start(
      {.command = {Program("tributary-server"), "--coordinator", address,
                   "--listen", "127.0.0.1:0"},
       .folder = folder()});
  auto program = RunningProcess::Start(
      {.command = {Program("program_rank"), kSgd, "steps", "1000000000"},
       .folder = folder(),
       .environment = {"TRIBUTARY_COORDINATOR=" + address}});
  ASSERT_TRUE(program->WaitForOutput("step 3 of the program", kSoon));
  coordinator->Signal(SIGKILL);
  EXPECT_EQ(coordinator->Wait(kSoon), 128 + SIGKILL);
  auto second = coordinate(address);
  ASSERT_TRUE(second->WaitForOutput("waits for servers: 1", kSoon));
  EXPECT_THAT(second->output(), Not(HasSubstr("waits for a program")));
  second->Signal(SIGINT);
  EXPECT_EQ(second->Wait(kSoon), 130) << second->output();
  EXPECT_EQ(program->Wait(kSoon), 0) << program->output();
  EXPECT_LT(Weight(), 0);
}

}  // namespace
}  // namespace tributary
