// SPDX-License-Identifier: Apache-2.0
// `tributary train` with misbehaving children. `train` looks for the programs
// to start in its own directory, so a copy of it beside small scripts starts
// these scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::IsGone;
using testing::kSoon;
using testing::RunningProcess;
namespace fs = std::filesystem;

class SupervisionTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    fs::copy_file(testing::Program("tributary"), Path("tributary"));
    Write("job.yaml", R"(name: small
model: {sequential: [{linear: {in: 20, out: 1}}]}
data:
  train: {synthetic: {kind: linear, rows: 100}}
  batch_size: 10
training: {steps: 5, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
)");
    // By default each script writes its pid and waits.
    WriteProgram("tributary-server", "echo $$ > server.pid; exec sleep 1000");
    WriteProgram("tributary-worker", "echo $$ > worker.pid; exec sleep 1000");
  }

  void WriteProgram(const std::string& name, const std::string& script) {
    // `train` first asks a worker whether the data fit.
    Write(name,
          "#!/bin/sh\n[ \"$1\" = --check-data ] && exit 0\n" + script + "\n");
    fs::permissions(Path(name), fs::perms::owner_all);
  }

  std::unique_ptr<RunningProcess> Train() {
    return RunningProcess::Start({.command = {Path("tributary"), "train",
                                              "job.yaml", "--run-dir", "run"},
                                  .folder = folder()});
  }

  // Returns a child's pid, once the child has written it.
  pid_t ChildPid(const std::string& role) {
    const absl::Time deadline = absl::Now() + kSoon;
    while (absl::Now() < deadline) {
      const std::string text = Read(role + ".pid");
      if (!text.empty() && text.back() == '\n') return std::stoi(text);
      absl::SleepFor(absl::Milliseconds(1));
    }
    return 0;
  }

  nlohmann::json Summary() {
    return nlohmann::json::parse(Read("run/summary.json"));
  }
};

TEST_F(SupervisionTest, ChildThatExitsIsNamedWithItsCodeAndLastWords) {
  WriteProgram("tributary-worker", "echo 'no graphics card' >&2; exit 7");
  auto train = Train();
  const pid_t server = ChildPid("server");
  // The server does not exit by itself, so it is killed in the end.
  EXPECT_EQ(train->Wait(kSoon), 1);
  EXPECT_THAT(train->output(),
              HasSubstr("tributary: worker-0 exited with code 7; its log ends: "
                        "no graphics card\n"));
  EXPECT_TRUE(IsGone(server, kSoon));
  EXPECT_EQ(Summary()["status"], "failed");
  EXPECT_THAT(std::string(Summary()["message"]),
              HasSubstr("worker-0 exited with code 7"));
}

TEST_F(SupervisionTest, ChildThatCrashesIsNamedWithItsSignal) {
  WriteProgram("tributary-server", "echo here; kill -ABRT $$");
  auto train = Train();
  EXPECT_EQ(train->Wait(kSoon), 1);
  EXPECT_THAT(train->output(),
              HasSubstr("tributary: server-0 was killed by signal 6 (Aborted); "
                        "its log ends: here\n"));
}

TEST_F(SupervisionTest, ChildrenDieWhenTrainIsKilled) {
  auto train = Train();
  const pid_t server = ChildPid("server");
  const pid_t worker = ChildPid("worker");
  ASSERT_GT(server, 0);
  ASSERT_GT(worker, 0);
  train->Signal(SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL);
  EXPECT_TRUE(IsGone(server, kSoon));
  EXPECT_TRUE(IsGone(worker, kSoon));
}

TEST_F(SupervisionTest, InterruptWhileWaitingEndsWithoutWeights) {
  auto train = Train();
  ASSERT_GT(ChildPid("worker"), 0);
  train->Signal(SIGINT);
  EXPECT_EQ(train->Wait(kSoon), 130);
  EXPECT_EQ(Summary()["status"], "interrupted");
  EXPECT_TRUE(Summary()["weights_sha256"].is_null());
  EXPECT_THAT(train->output(), HasSubstr("stopped before the first step"));
}

TEST_F(SupervisionTest, MissingProgramIsNamedAndNothingBegins) {
  fs::remove(Path("tributary-worker"));
  auto train = Train();
  EXPECT_EQ(train->Wait(kSoon), 2);
  EXPECT_THAT(train->output(), HasSubstr("tributary-worker is not there"));
  EXPECT_FALSE(fs::exists(Path("run")));
}

TEST_F(SupervisionTest, CtrlCOnTheTerminalReachesTrainAlone) {
  // A shell that receives SIGINT would create its file.
  const std::string script =
      "trap 'echo interrupted > ROLE.interrupted' INT; echo $$ > ROLE.pid; "
      "sleep 1000 & wait";
  for (const char* role : {"server", "worker"}) {
    std::string text = script;
    for (size_t at; (at = text.find("ROLE")) != std::string::npos;) {
      text.replace(at, 4, role);
    }
    WriteProgram(std::string("tributary-") + role, text);
  }
  auto train = RunningProcess::Start(
      {.command = {Path("tributary"), "train", "job.yaml", "--run-dir", "run"},
       .folder = folder(),
       .terminal = true});
  ASSERT_GT(ChildPid("server"), 0);
  ASSERT_GT(ChildPid("worker"), 0);
  train->Type("\x03");
  EXPECT_EQ(train->Wait(kSoon), 130);
  EXPECT_FALSE(fs::exists(Path("server.interrupted")));
  EXPECT_FALSE(fs::exists(Path("worker.interrupted")));
}

}  // namespace
}  // namespace tributary
