// SPDX-License-Identifier: Apache-2.0
#include "common/host/end_on_signal.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tributary {
namespace {

constexpr int kKilled = 200;  // + the signal
constexpr int kNotAllowed = 199;

// How a process ends that runs `body`: its exit code, or kKilled + the signal.
// As process 1, of a pid namespace of its own, where that is asked for.
int EndOf(void (*body)(), bool as_process_1) {
  const pid_t outer = fork();
  if (outer == 0) {
    if (as_process_1 && unshare(CLONE_NEWPID) != 0) _exit(kNotAllowed);
    const pid_t inner = fork();
    if (inner == 0) {
      body();
      _exit(0);
    }
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WIFSIGNALED(status) ? kKilled + WTERMSIG(status)
                              : WEXITSTATUS(status));
  }
  int status = 0;
  waitpid(outer, &status, 0);
  return WEXITSTATUS(status);
}

void Terminate() { raise(SIGTERM); }

void TerminateHandled() {
  EndOnSignal();
  Terminate();
}

TEST(EndOnSignalTest, AnOrdinaryProcessIsKilledByTheSignal) {
  EXPECT_EQ(EndOf(TerminateHandled, /*as_process_1=*/false), kKilled + SIGTERM);
}

TEST(EndOnSignalTest, ASigtermThatTheStarterIgnoresStaysIgnored) {
  const auto as_from_slurm = [] {
    signal(SIGTERM, SIG_IGN);
    TerminateHandled();
  };
  EXPECT_EQ(EndOf(as_from_slurm, /*as_process_1=*/false), 0);
}

TEST(EndOnSignalTest, Process1ExitsWithTheSignalsCode) {
  const int end = EndOf(TerminateHandled, /*as_process_1=*/true);
  if (end == kNotAllowed) GTEST_SKIP() << "may not make pid namespaces";
  EXPECT_EQ(end, 128 + SIGTERM);
}

TEST(EndOnSignalTest, WithoutItProcess1DoesNotEvenNotice) {
  const int end = EndOf(Terminate, /*as_process_1=*/true);
  if (end == kNotAllowed) GTEST_SKIP() << "may not make pid namespaces";
  EXPECT_EQ(end, 0);
}

}  // namespace
}  // namespace tributary
