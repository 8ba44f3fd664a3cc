// SPDX-License-Identifier: Apache-2.0
// `tributary train` and `tributary compare` on several hosts. All addresses in
// 127/8 belong to this machine, so they act as hosts that any launcher reaches.
// This launcher starts the program as a child, so that the program has another
// pid than the launcher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::kSoon;
using testing::RunningProcess;
namespace fs = std::filesystem;

constexpr char kSeveralHostsJob[] = R"(name: small
model: {mlp: {in: 16, hidden: [64], out: 1, activation: tanh}}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 1000}}
  test: {synthetic: {kind: mlp_teacher, rows: 200, first_row: 1000000}}
  batch_size: 20
training: {epochs: 40, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
cluster: {servers: 2, workers: 2, lease_seconds: 3}
)";

constexpr char kLauncher[] = R"(#!/bin/sh
echo "$@" >> launched.txt
shift
exec 3<&0
"$@" <&3 &
wait $!
)";

using Words = std::vector<std::string>;

class SeveralHostsTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    Write("job.yaml", kSeveralHostsJob);
    Write("launch.sh", kLauncher);
    fs::permissions(Path("launch.sh"), fs::perms::owner_all);
  }

  std::unique_ptr<RunningProcess> Start(const std::string& subcommand,
                                        const Words& words) {
    Words command = {testing::Program("tributary"), subcommand, "job.yaml"};
    command.insert(command.end(), words.begin(), words.end());
    return RunningProcess::Start({.command = command, .folder = folder()});
  }
  // Starts the command on two hosts, with the coordinator on a third.
  std::unique_ptr<RunningProcess> StartOnHosts(const std::string& subcommand,
                                               Words words) {
    for (const char* word :
         {"--worker-hosts", "127.0.0.2,127.0.0.3", "--listen", "127.0.0.4:0",
          "--launch", "./launch.sh {host}"}) {
      words.push_back(word);
    }
    return Start(subcommand, words);
  }

  json Summary(const std::string& run) {
    return json::parse(Read(run + "/summary.json"));
  }
  std::string LocalSha256(const Words& words = {}) {
    Words local = {"--run-dir", "local"};
    local.insert(local.end(), words.begin(), words.end());
    auto train = Start("train", local);
    EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
    return Summary("local")["weights_sha256"];
  }
  // The command lines containing this text that the launcher has received.
  Words Launched(const std::string& piece) {
    Words lines;
    std::istringstream text(Read("launched.txt"));
    for (std::string line; std::getline(text, line);) {
      if (absl::StrContains(line, piece)) lines.push_back(line);
    }
    return lines;
  }
  // The pids of all holders of the place so far, from the lines "worker 1 is
  // HOST (pid N)" in the coordinator's log.
  std::vector<pid_t> PidsOf(const std::string& run, const std::string& name) {
    std::vector<pid_t> pids;
    const std::string log = Read(run + "/logs/coordinator.log");
    const std::regex pattern(name + " is .*pid ([0-9]+)");
    for (std::sregex_iterator it(log.begin(), log.end(), pattern), end;
         it != end; ++it) {
      pids.push_back(std::stoi((*it)[1]));
    }
    return pids;
  }
};

TEST_F(SeveralHostsTest, ARunOverHostsEndsWithTheWeightsOfOneMachine) {
  auto train = StartOnHosts(
      "train", {"--run-dir", "hosts", "--server-hosts", "127.0.0.5"});
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_EQ(Summary("hosts")["weights_sha256"], LocalSha256());
  ASSERT_EQ(Launched("").size(), 4u);
  for (const char* server : {"--index 0", "--index 1"}) {
    const Words lines =
        Launched(std::string("tributary-server --coordinator "
                             "127.0.0.4:"));
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_TRUE(absl::StrContains(absl::StrCat(lines[0], lines[1]), server));
    EXPECT_THAT(lines, ::testing::Each(HasSubstr("--listen 127.0.0.5:0")));
    EXPECT_THAT(lines, ::testing::Each(::testing::StartsWith("127.0.0.5 /")));
  }
  EXPECT_THAT(Launched("--index 0 --local-rank 0"),
              ::testing::ElementsAre(::testing::StartsWith("127.0.0.2 /")));
  EXPECT_THAT(Launched("--index 1 --local-rank 0"),
              ::testing::ElementsAre(::testing::StartsWith("127.0.0.3 /")));
  for (const char* log : {"server-0", "server-1", "worker-0", "worker-1"}) {
    EXPECT_NE(Read(std::string("hosts/logs/") + log + ".log"), "") << log;
  }
}

TEST_F(SeveralHostsTest, AShellsLauncherGetsTheProgramAsOneWord) {
  auto train =
      Start("train", {"--run-dir", "run", "--set", "training.epochs=1",
                      "--worker-hosts", "127.0.0.2", "--listen", "127.0.0.4:0",
                      "--launch", "sh -c '{command}' {host}"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
}

TEST_F(SeveralHostsTest, AWorkerKilledUnderItsLauncherIsReplaced) {
  auto train = StartOnHosts("train", {"--run-dir", "hosts"});
  ASSERT_TRUE(train->WaitForOutput("epoch 2/40: test", kSoon));
  const std::vector<pid_t> before = PidsOf("hosts", "worker 1");
  ASSERT_EQ(before.size(), 1u);
  kill(before[0], SIGKILL);
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_EQ(Summary("hosts")["lost"]["workers"], 1);
  EXPECT_EQ(PidsOf("hosts", "worker 1").size(), 2u);
  EXPECT_EQ(Launched("tributary-worker").size(), 3u);
  EXPECT_EQ(Summary("hosts")["weights_sha256"], LocalSha256());
}

// The stopped worker's heartbeats end. Its launcher is killed once and another
// is started. The new launcher starts slowly, as ssh does, and must not be
// killed because of the silence before it.
TEST_F(SeveralHostsTest, AWorkerThatIsStoppedLosesItsLauncherAndIsReplaced) {
  Write("launch.sh",
        absl::StrReplaceAll(kLauncher, {{"shift", "sleep 0.5\nshift"}}));
  auto train = StartOnHosts("train", {"--run-dir", "hosts"});
  ASSERT_TRUE(train->WaitForOutput("epoch 2/40: test", kSoon));
  const std::vector<pid_t> before = PidsOf("hosts", "worker 0");
  ASSERT_EQ(before.size(), 1u);
  kill(before[0], SIGSTOP);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  kill(before[0], SIGKILL);  // if it has outlived its launcher
  EXPECT_THAT(train->output(), HasSubstr("worker-0 (its launcher, pid "));
  EXPECT_EQ(Summary("hosts")["lost"]["workers"], 1);
  EXPECT_EQ(Launched("tributary-worker").size(), 3u);
  EXPECT_EQ(Summary("hosts")["weights_sha256"], LocalSha256());
}

TEST_F(SeveralHostsTest, AJobThatFailsOnLossNamesTheWorkerUnderItsLauncher) {
  auto train = StartOnHosts(
      "train", {"--run-dir", "hosts", "--set", "cluster.on_worker_loss=fail",
                "--set", "training.epochs=1000000"});
  ASSERT_TRUE(train->WaitForOutput("epoch 1/1000000: test", kSoon));
  const std::vector<pid_t> pids = PidsOf("hosts", "worker 1");
  ASSERT_EQ(pids.size(), 1u);
  kill(pids[0], SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 1);
  EXPECT_THAT(train->output(), HasSubstr("worker 1 ("));
  EXPECT_THAT(train->output(), HasSubstr("worker-1 exited with code 137"));
}

TEST_F(SeveralHostsTest, ALauncherThatCannotReachItsHostIsQuoted) {
  Write("launch.sh", "#!/bin/sh\necho \"no route to $1\"; exit 255\n");
  auto train = StartOnHosts("train", {"--run-dir", "hosts"});
  EXPECT_EQ(train->Wait(kSoon), 1);
  EXPECT_THAT(train->output(), HasSubstr("exited with code 255; its log ends: "
                                         "no route to 127.0.0."));
}

TEST_F(SeveralHostsTest, CompareRunsThereAndPredictsFromThere) {
  auto compare =
      StartOnHosts("compare", {"--strategies", "parameter_server,all_reduce",
                               "--set", "training.epochs=2", "--set",
                               "training.optimizer={sgd: {learning_rate: 0.1}}",
                               "--run-dir", "runs"});
  ASSERT_EQ(compare->Wait(kSoon), 0) << compare->output();
  EXPECT_EQ(Summary("runs/parameter_server")["weights_sha256"],
            LocalSha256({"--set", "training.epochs=2"}));
  const json figures = json::parse(Read("runs/compare.json"));
  ASSERT_EQ(figures["runs"].size(), 3u);
  for (const json& run : figures["runs"]) {
    EXPECT_EQ(run["status"], "done") << run["strategy"];
    EXPECT_GT(run["predicted_step_seconds"], 0) << run["strategy"];
    EXPECT_GT(run["step_seconds"], 0) << run["strategy"];
  }
  // Measured once, as no shared cores are known, and with an absolute path.
  const Words computed = Launched("--measure-compute " + Path("job.yaml"));
  ASSERT_EQ(computed.size(), 1u) << Read("launched.txt");
  EXPECT_THAT(computed[0], ::testing::StartsWith("127.0.0.2 /"));
  EXPECT_EQ(Launched("--serve-links 127.0.0.3:0").size(), 1u);
  EXPECT_THAT(Launched("--measure-links 127.0.0.3:"),
              ::testing::ElementsAre(::testing::StartsWith("127.0.0.2 /")));
}

TEST_F(SeveralHostsTest, WhatIsGivenIsNotMeasured) {
  auto compare =
      StartOnHosts("compare", {"--strategies", "parameter_server", "--set",
                               "training.steps=2", "--bandwidth", "1MB",
                               "--compute", "0.0001", "--run-dir", "runs"});
  ASSERT_EQ(compare->Wait(kSoon), 0) << compare->output();
  EXPECT_TRUE(Launched("--measure").empty()) << Read("launched.txt");
  EXPECT_GT(json::parse(
                Read("runs/compare.json"))["runs"][1]["predicted_step_seconds"],
            0);
}

TEST_F(SeveralHostsTest, WhatCannotBeIsRefusedBeforeAnythingBegins) {
  const std::vector<std::pair<Words, std::string>> refused = {
      {{"--worker-hosts", "127.0.0.2"},
       "--listen: wanted an address of this machine at which the hosts reach "
       "the coordinator, as in --listen 10.0.0.1:0; got 127.0.0.1:0"},
      {{"--worker-hosts", "127.0.0.2", "--listen", "127.0.0.4:0", "--launch",
        "'sh {host}"},
       "--launch: a ' does not end"},
      {{"--worker-hosts", "-x", "--listen", "127.0.0.4:0"},
       "--worker-hosts: wanted names or addresses"},
      {{"--server-hosts", "127.0.0.2"}, "--server-hosts requires"},
      {{"--launch", "sh {host}"}, "--launch requires --worker-hosts"},
      {{"--worker-hosts", "10.0.0.2", "--listen", "10.0.0.1:0", "--launch",
        "./launch.sh {host}", "--set", "strategy.all_reduce={}"},
       "10.0.0.1 is open to other machines, and the ports of groups"}};
  for (const auto& [words, sentence] : refused) {
    for (const char* subcommand : {"train", "compare"}) {
      auto process = Start(subcommand, words);
      EXPECT_EQ(process->Wait(kSoon), 2) << subcommand << process->output();
      EXPECT_THAT(process->output(), HasSubstr(sentence)) << subcommand;
    }
  }
  EXPECT_EQ(NumFiles(), 2) << "the job and the launcher alone";
}

}  // namespace
}  // namespace tributary
