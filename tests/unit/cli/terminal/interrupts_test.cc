// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/interrupts.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace tributary {
namespace {

constexpr int64_t kPatience = 1'000'000;

// timeout(1) signals its child, and 2 ms later the group that it is in.
TEST(InterruptsTest, SignalsWithinASecondAreOneRequest) {
  for (int signal : {SIGINT, SIGTERM}) {
    EndRequest request;
    EXPECT_EQ(request.Receive(SIGTERM, 7), RepeatedSignal::kNothing);
    EXPECT_EQ(request.Receive(signal, 7), RepeatedSignal::kNothing);
    EXPECT_EQ(request.Receive(signal, kPatience + 6), RepeatedSignal::kNothing);
    EXPECT_EQ(request.Receive(signal, kPatience + 7), RepeatedSignal::kEndNow);
    EXPECT_EQ(request.signal(), SIGTERM);
  }
}

TEST(InterruptsTest, AClosedTerminalAndABatchSystemNeverEndItAtOnce) {
  for (int signal : {SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    EndRequest request;
    EXPECT_EQ(request.Receive(signal, 1), RepeatedSignal::kNothing);
    EXPECT_EQ(request.Receive(signal, 60 * kPatience), RepeatedSignal::kNothing)
        << signal;
  }
}

// timeout(1) again, and a SIGSTOP between its two signals.
TEST(InterruptsTest, ASignalThatComesDuringAStopIsNoLaterOne) {
  EndRequest request;
  request.Continue(1);
  EXPECT_EQ(request.Receive(SIGTERM, kPatience), RepeatedSignal::kNothing);
  EXPECT_EQ(request.Receive(SIGTERM, kPatience), RepeatedSignal::kNothing);
  // The kernel may deliver the signal before SIGCONT; the handler asks twice.
  EXPECT_EQ(request.Receive(SIGTERM, 9 * kPatience), RepeatedSignal::kEndNow);
  request.Continue(9 * kPatience + 2);
  EXPECT_EQ(request.Receive(SIGTERM, 9 * kPatience), RepeatedSignal::kNothing);
  EXPECT_EQ(request.Receive(SIGTERM, 10 * kPatience), RepeatedSignal::kNothing);
  EXPECT_EQ(request.Receive(SIGINT, 11 * kPatience), RepeatedSignal::kEndNow);
}

// Raises each signal in a process of its own, the last one as under nohup(1).
TEST(InterruptsDeathTest, EverySignalOfAnEndIsARequest) {
  const auto asks = [](int signal, void (*before)(int)) {
    std::signal(SIGHUP, before);
    Interrupts::Install();
    raise(signal);
    _exit(Interrupts::Requested());
  };
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    EXPECT_EXIT(asks(signal, SIG_DFL), ::testing::ExitedWithCode(signal), "")
        << signal;
  }
  EXPECT_EXIT(asks(SIGHUP, SIG_IGN), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tributary
