// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace tributary {

// What a signal means to a program that an earlier one has asked to stop.
enum class RepeatedSignal { kNothing, kEndNow };

// Senders repeat a signal at once: timeout(1) signals a process and then its
// group. Only a person or a supervisor that loses patience sends SIGINT or
// SIGTERM again later.
RepeatedSignal MeaningOfRepeated(int signal, int64_t micros_since_first);

// Handles the signals that end a run: SIGINT and SIGTERM, SIGHUP of a closed
// terminal, and SIGUSR1, SIGUSR2 and SIGXCPU, by which batch systems say that
// the time is nearly up. The first one is a request that the program polls. A
// repeated one (MeaningOfRepeated) kills the children and ends the program at
// once with exit code 130. nohup(1) keeps its effect.
class Interrupts {
 public:
  static void Install();
  // The first signal received; 0: none.
  static int Requested();

  // Adds and removes process groups that a repeated signal kills.
  static void KillWithUs(pid_t group);
  static void Forget(pid_t group);
};

}  // namespace tributary
