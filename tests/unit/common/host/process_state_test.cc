// SPDX-License-Identifier: Apache-2.0
#include "common/host/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace tributary {
namespace {

// /proc/PID/stat of a process in this state, which started at tick 4711.
std::string Stat(const std::string& name, char state) {
  return "77 (" + name + ") " + state +
         " 1 77 77 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 3 0 4711 1000 200 "
         "18446744073709551615 1 1 0";
}

TEST(ProcessStateTest, ReadsStateAndStart) {
  EXPECT_EQ(ReadProcessStat(Stat("a", 'S')).state, ProcessState::kRuns);
  EXPECT_EQ(ReadProcessStat(Stat("a", 'D')).state, ProcessState::kRuns);
  EXPECT_EQ(ReadProcessStat(Stat("a", 'T')).state, ProcessState::kStopped);
  EXPECT_EQ(ReadProcessStat(Stat("a", 't')).state, ProcessState::kStopped);
  EXPECT_EQ(ReadProcessStat(Stat("a", 'Z')).state, ProcessState::kGone);
  EXPECT_EQ(ReadProcessStat(Stat("a", 'R')).start_ticks, 4711u);
  EXPECT_EQ(ReadProcessStat(Stat("a", 'Z')).start_ticks, 0u);
}

TEST(ProcessStateTest, ANameMayLookLikeFields) {
  const ProcessFacts facts = ReadProcessStat(Stat("x) T 1 (y", 'R'));
  EXPECT_EQ(facts.state, ProcessState::kRuns);
  EXPECT_EQ(facts.start_ticks, 4711u);
}

TEST(ProcessStateTest, OtherTextsSayThatTheProcessIsGone) {
  for (const char* text : {"", "77", "77 (a)", "77 (a) T", "77 (a) T 1 2 3"}) {
    EXPECT_EQ(ReadProcessStat(text).state, ProcessState::kGone) << text;
  }
}

TEST(ProcessStateTest, AChildIsStoppedContinuedAndGone) {
  EXPECT_EQ(LookAtProcess(getpid()).state, ProcessState::kRuns);
  EXPECT_GT(LookAtProcess(getpid()).start_ticks, 0u);
  EXPECT_EQ(LookAtProcess(0).state, ProcessState::kGone);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_EQ(LookAtProcess(child).state, ProcessState::kStopped);
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT),
            0);
  EXPECT_EQ(LookAtProcess(child).state, ProcessState::kGone) << "a zombie";
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(LookAtProcess(child).state, ProcessState::kGone);
}

}  // namespace
}  // namespace tributary
