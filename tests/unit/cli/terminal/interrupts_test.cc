// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/interrupts.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>

namespace tributary {
namespace {

// timeout(1) signals its child, and 2 ms later the group that it is in.
TEST(InterruptsTest, SignalsWithinASecondAreOneRequest) {
  for (int signal : {SIGINT, SIGTERM}) {
    EXPECT_EQ(MeaningOfRepeated(signal, 0), RepeatedSignal::kNothing);
    EXPECT_EQ(MeaningOfRepeated(signal, 999'999), RepeatedSignal::kNothing);
    EXPECT_EQ(MeaningOfRepeated(signal, 1'000'000), RepeatedSignal::kEndNow);
  }
}

TEST(InterruptsTest, AClosedTerminalAndABatchSystemNeverEndItAtOnce) {
  for (int signal : {SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    EXPECT_EQ(MeaningOfRepeated(signal, 60'000'000), RepeatedSignal::kNothing)
        << signal;
  }
}

// In a process of its own, which nohup(1) has started.
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
