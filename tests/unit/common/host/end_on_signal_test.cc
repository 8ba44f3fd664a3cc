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

// How a process that runs `body` ends: its exit code, or kKilled + the signal.
// With `as_process_1` it is process 1 of a pid namespace of its own.
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

// As EndOf, plus 1000 if the process has called Speak before its end.
int spoken_to = -1;
int EndWithLastWords(void (*body)()) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  spoken_to = ends[1];
  const int end = EndOf(body, /*as_process_1=*/false);
  close(ends[1]);
  char byte = 0;
  const bool spoke = read(ends[0], &byte, 1) == 1;
  close(ends[0]);
  return spoke ? 1000 + end : end;
}

void Speak() { (void)!write(spoken_to, "x", 1); }

TEST(LastWordsTest, AreSpokenBeforeSigtermEndsTheProcess) {
  EXPECT_EQ(EndWithLastWords([] {
              EndOnSignal();
              const LastWords words(Speak);
              Terminate();
              while (true) pause();
            }),
            1000 + kKilled + SIGTERM);
}

TEST(LastWordsTest, AreNotForSigint) {
  EXPECT_EQ(EndWithLastWords([] {
              EndOnSignal();
              const LastWords words(Speak);
              raise(SIGINT);
            }),
            kKilled + SIGINT);
}

TEST(LastWordsTest, ASecondSigtermEndsTheProcessAtOnce) {
  EXPECT_EQ(EndWithLastWords([] {
              EndOnSignal();
              const LastWords words([] {
                while (true) pause();
              });
              Terminate();
              Terminate();
            }),
            kKilled + SIGTERM);
}

TEST(LastWordsTest, AreForgottenAfterwardsAndDoNothingWithoutAHandler) {
  EXPECT_EQ(EndWithLastWords([] {
              EndOnSignal();
              { const LastWords words(Speak); }
              Terminate();
            }),
            kKilled + SIGTERM);
  EXPECT_EQ(EndWithLastWords([] {
              const LastWords words(Speak);
              Terminate();
            }),
            kKilled + SIGTERM);
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
