// SPDX-License-Identifier: Apache-2.0
// All processes of a job end at once, and the disk has only what was synced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/faults/power_cut.h"

namespace tributary {
namespace {

using nlohmann::json;
using testing::PowerCut;

struct Cut {
  const char* label;
  // A failpoint that fires at the time of the cut, such as
  // "coordinator-state:5"; empty: the cut comes once the coordinator has named
  // two checkpoints.
  const char* point;
  PowerCut::Survivors survivors;
  const char* strategy = "";  // empty: two servers
};

// The step in the last match of `pattern`; 0: there is none.
int LastStep(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  int step = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end;
       match != end; ++match) {
    step = std::stoi((*match)[1]);
  }
  return step;
}

class PowerCutTest : public FaultTest,
                     public ::testing::WithParamInterface<Cut> {
 protected:
  void StartMembers(const std::string& address) {
    for (const char* program : {"tributary-server", "tributary-server",
                                "tributary-worker", "tributary-worker"}) {
      const bool server = absl::EndsWith(program, "server");
      if (server && *GetParam().strategy != 0) continue;
      members_.push_back(Start({program, "--coordinator", address}));
    }
  }
  void EndEverything(RunningProcess& coordinator) {
    coordinator.Signal(SIGKILL);
    for (auto& member : members_) member->Signal(SIGKILL);
    coordinator.Wait(kSoon);
    for (auto& member : members_) member->Wait(kSoon);
    members_.clear();
  }

  std::vector<std::unique_ptr<RunningProcess>> members_;
};

TEST_P(PowerCutTest, TheJobGoesOnFromWhatItHasNamedAndEndsWithTheSameBits) {
  EditJob("cluster:", "checkpoint: {every_steps: 50}\ncluster:");
  EditJob("lease_seconds: 3", "lease_seconds: 1");
  if (*GetParam().strategy != 0) {
    EditJob("servers: 2, ", "");
    EditJob("cluster:",
            absl::StrCat("strategy: ", GetParam().strategy, "\ncluster:"));
    fewest_ports_ = 1;
  }
  const PowerCut power(Path("run"), Path("synced"));
  SetEnvironment(power.Environment());
  const std::string point = GetParam().point;
  if (!point.empty()) SetFailpoints(point + ":kill");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  StartMembers(address);
  if (point.empty()) {
    ASSERT_TRUE(coordinator->WaitForOutput("checkpoint of step 100:", kSoon))
        << coordinator->output();
  } else {
    ASSERT_TRUE(Eventually([&] { return Fired(point); }));
  }
  EndEverything(*coordinator);
  const int named =
      LastStep(coordinator->output(), "checkpoint of step (\\d+)");
  power.Happen(GetParam().survivors);

  SetFailpoints("");
  auto again = Start({"tributary-coordinator", "--job", "job.yaml", "--run-dir",
                      "run", "--listen", address});
  StartMembers(address);
  EXPECT_EQ(again->Wait(kSoon), 0) << again->output();
  const json summary = Summary("run");
  if (summary["lost"]["rollbacks"] == 0) {  // there was nothing left to do
    EndEverything(*again);
    fewest_ports_ = 1;
  }
  for (auto& member : members_) EXPECT_EQ(member->Wait(kSoon), 0);
  SetEnvironment({});
  EXPECT_EQ(summary["steps"], 640);
  EXPECT_EQ(summary["evaluations"].size(), 40u);
  if (summary["lost"]["rollbacks"] > 0) {
    EXPECT_GE(LastStep(again->output(), "goes back to step (\\d+)"), named)
        << again->output();
  }
  EXPECT_EQ(Sha256("run"), Undisturbed());
  std::istringstream lines(Read("run/metrics.jsonl"));
  int64_t step = 0;
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    EXPECT_EQ(record["step"], ++step);
    // A lost report is not replaced by other values.
    const bool lost = record.contains("lost_reports");
    EXPECT_EQ(record["loss"].is_null(), lost) << line;
    EXPECT_EQ(record["samples"] == 0, lost) << line;
  }
  EXPECT_EQ(step, 640);
}

using PowerCutResumeTest = PowerCutTest;

TEST_P(PowerCutResumeTest, AnotherRunGoesOnFromIt) {
  const std::vector<std::string> words = {"--set", "checkpoint.every_steps=50",
                                          "--set", "evaluation.keep_best=true"};
  const PowerCut power(Path("run"), Path("synced"));
  SetEnvironment(power.Environment());
  auto train = Train("run", words);
  ASSERT_TRUE(train->WaitForOutput("epoch 10/40: test", kSoon));
  std::vector<pid_t> pids;
  for (const char* name : {"server 0", "server 1", "worker 0", "worker 1"}) {
    pids.push_back(PidOf("run", name));
  }
  train->Signal(SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL);
  for (pid_t pid : pids) EXPECT_TRUE(testing::IsGone(pid, kAtOnce));
  ExpectNoProcess();  // the process that removes keys ends last
  power.Happen(GetParam().survivors);

  SetEnvironment({});
  auto resumed =
      Start({"tributary", "train", "--resume", "run", "--run-dir", "resumed"});
  EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_GE(Summary("resumed")["start_step"], 50);
  EXPECT_EQ(Sha256("resumed"), Undisturbed(words));
}

INSTANTIATE_TEST_SUITE_P(
    Cuts, PowerCutResumeTest,
    ::testing::Values(Cut{"Nothing", "", {}},
                      Cut{"NamesSurvive", "", {.names = true}},
                      Cut{"BytesSurvive", "", {.bytes = true}}),
    [](const ::testing::TestParamInfo<Cut>& info) { return info.param.label; });

INSTANTIATE_TEST_SUITE_P(
    Cuts, PowerCutTest,
    ::testing::Values(
        Cut{"Nothing", "", {}}, Cut{"NamesSurvive", "", {.names = true}},
        Cut{"EverythingSurvives", "", {.names = true, .bytes = true}},
        Cut{"BytesSurvive", "", {.bytes = true}},
        Cut{"Replicated", "", {}, "{all_reduce: {}}"},
        Cut{"Sharded", "", {}, "{all_reduce: {sharded: true}}"},
        Cut{"ShardedWeights",
            "coordinator-weights-read:1",
            {},
            "{all_reduce: {sharded: true}}"},
        Cut{"State", "coordinator-state:9", {}},
        Cut{"ShardFile", "shard-file-after-rename:5", {.names = true}},
        Cut{"ManifestFile", "manifest-after-rename:3", {.names = true}},
        Cut{"Manifest", "coordinator-manifest:3", {}},
        Cut{"Weights", "coordinator-weights-saved:1", {}},
        Cut{"Done", "coordinator-done:1", {}},
        Cut{"Summary", "coordinator-summary:1", {.names = true}}),
    [](const ::testing::TestParamInfo<Cut>& info) { return info.param.label; });

}  // namespace
}  // namespace tributary
