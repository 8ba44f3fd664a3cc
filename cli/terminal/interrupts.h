// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace tributary {

// What a program that is already stopping does when it gets one more signal.
enum class RepeatedSignal { kNothing, kEndNow };

// Some senders repeat a signal at once: timeout(1) signals a process and then
// its group. A later SIGINT or SIGTERM comes from a person or a supervisor that
// does not want to wait.
RepeatedSignal MeaningOfRepeated(int signal, int64_t micros_since_first);

// Handles the signals that end a run: SIGINT and SIGTERM, SIGHUP of a closed
// terminal, and SIGUSR1, SIGUSR2 and SIGXCPU, with which batch systems announce
// the time limit. The first one is a request that the program polls. A repeated
// one (MeaningOfRepeated) kills the children and ends the program at once with
// exit code 130. Under nohup(1), SIGHUP stays ignored.
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
