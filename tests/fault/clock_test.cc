// SPDX-License-Identifier: Apache-2.0
// The wall clock of a process jumps while it trains, as after a time server's
// first answer, after a machine has slept, or when an operator sets it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/faults/clock_step.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"

namespace tributary {
namespace {

using nlohmann::json;
using testing::ClockStep;

struct Step {
  const char* victim;  // "": all processes
  int minutes;
};

class ClockTest : public FaultTest, public ::testing::WithParamInterface<Step> {
 protected:
  void TearDown() override {
    processes_.clear();
    for (const auto& [name, clock] : clocks_) munmap(clock, sizeof(ClockStep));
    FaultTest::TearDown();
  }

  // Starts a program whose clock clocks_[name] can step.
  void StartWithClock(const std::string& name,
                      std::vector<std::string> command) {
    const std::string file = absl::StrCat(folder(), "/", name, ".clock");
    Write(name + ".clock", std::string(sizeof(ClockStep), '\0'));
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    void* memory = mmap(nullptr, sizeof(ClockStep), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);
    close(fd);
    ASSERT_NE(memory, MAP_FAILED);
    clocks_[name] = static_cast<ClockStep*>(memory);
    std::vector<std::string> words = {
        "/usr/bin/env",
        absl::StrCat("LD_PRELOAD=",
                     testing::Program("libtributary_clock_step.so")),
        absl::StrCat(testing::kClockStepFile, "=", file),
        // The address sanitizer's runtime expects to be loaded first, but
        // works here too.
        "ASAN_OPTIONS=verify_asan_link_order=0"};
    command[0] = testing::Program(command[0]);
    words.insert(words.end(), command.begin(), command.end());
    processes_[name] =
        RunningProcess::Start({.command = words, .folder = folder()});
  }

  void StartJob() {
    StartWithClock("coordinator",
                   {"tributary-coordinator", "--job", "job.yaml", "--run-dir",
                    "run", "--listen", "127.0.0.1:0"});
    RunningProcess& coordinator = *processes_["coordinator"];
    ASSERT_TRUE(coordinator.WaitForOutput(" waits for", kSoon));
    const std::string& text = coordinator.output();
    const size_t end = text.find(" waits for");
    const size_t begin = text.rfind(' ', end - 1) + 1;
    address_ = text.substr(begin, end - begin);
    for (const std::string role : {"server", "worker"}) {
      for (const std::string index : {"0", "1"}) {
        StartWithClock(
            absl::StrCat(role, " ", index),
            {"tributary-" + role, "--coordinator", address_, "--index", index});
      }
    }
  }

  // A member's waiting_for in the status; empty while it does not wait.
  std::string WaitingFor(const std::string& name) {
    const auto result =
        testing::RunProcess({testing::Program("tributary"), "status",
                             "--coordinator", address_, "--json"});
    const json status =
        json::parse(result.output, nullptr, /*allow_exceptions=*/false);
    if (status.is_discarded()) return "";
    for (const json& member : status["members"]) {
      if (absl::StrCat(member["role"].get<std::string>(), " ",
                       member["index"].get<int>()) == name) {
        return member.value("waiting_for", "");
      }
    }
    return "";
  }
  bool AnyEnded() {
    for (const auto& [name, process] : processes_) {
      if (testing::IsGone(process->pid(), absl::ZeroDuration())) return true;
    }
    return false;
  }

  std::map<std::string, std::unique_ptr<RunningProcess>> processes_;
  std::map<std::string, ClockStep*> clocks_;
  std::string address_;
};

// A rank is stopped, so that the others are waiting when the clock jumps. After
// that they must repeat their calls, using the time that they have left.
TEST_P(ClockTest, AStepChangesNothing) {
  EditJob("lease_seconds: 3", "lease_seconds: 60");
  const std::string undisturbed = Undisturbed();
  StartJob();
  ASSERT_TRUE(
      processes_["coordinator"]->WaitForOutput("epoch 3/40: test", kSoon));
  processes_["worker 1"]->Signal(SIGSTOP);
  ASSERT_TRUE(Eventually([this] {
    return absl::StrContains(WaitingFor("server 0"), "rank 1") ||
           absl::StrContains(WaitingFor("server 1"), "rank 1");
  }));
  std::vector<ClockStep*> stepped;
  for (const auto& [name, clock] : clocks_) {
    if (GetParam().victim != std::string() && GetParam().victim != name) {
      continue;
    }
    clock->offset_nanos = GetParam().minutes * int64_t{60'000'000'000};
    stepped.push_back(clock);
  }
  EXPECT_TRUE(Eventually([this] {
    return AnyEnded() ||
           absl::StrContains(WaitingFor("worker 0"), "waits for rank 1");
  }));
  EXPECT_FALSE(AnyEnded());
  processes_["worker 1"]->Signal(SIGCONT);
  for (auto& [name, process] : processes_) {
    EXPECT_EQ(process->Wait(kSoon), 0) << name << ": " << process->output();
  }
  EXPECT_EQ(Sha256("run"), undisturbed);
  const json lost = Summary("run")["lost"];
  EXPECT_EQ(lost["workers"], 0);
  EXPECT_EQ(lost["servers"], 0);
  EXPECT_EQ(lost["rollbacks"], 0);
  ASSERT_FALSE(stepped.empty());
  for (const ClockStep* clock : stepped) EXPECT_GT(clock->stepped_reads, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Steps, ClockTest,
    ::testing::Values(Step{"coordinator", 10}, Step{"coordinator", -10},
                      Step{"server 0", 10}, Step{"server 0", -10},
                      Step{"worker 0", 10}, Step{"worker 0", -10}, Step{"", 60},
                      Step{"", -60}),
    [](const ::testing::TestParamInfo<Step>& info) {
      std::string name = info.param.victim;
      name = name.empty() ? "All" : name.substr(0, name.find(' '));
      return absl::StrCat(name, info.param.minutes > 0 ? "Forward" : "Back");
    });

}  // namespace
}  // namespace tributary
