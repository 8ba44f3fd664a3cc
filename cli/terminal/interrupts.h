// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace tributary {

// The reaction to one more signal of a program that is already asked to end.
enum class RepeatedSignal { kNothing, kEndNow };

// A request to end, which a signal handler may keep: lock-free atomics. Times
// are microseconds of one monotonic clock.
class EndRequest {
 public:
  // Some senders repeat a signal at once: timeout(1) signals a process and then
  // its group. A SIGINT or SIGTERM that comes a second later or more is from a
  // person or a supervisor that does not want to wait.
  RepeatedSignal Receive(int signal, int64_t now);
  // Call it when the program was stopped (SIGSTOP) and runs again. Signals sent
  // meanwhile arrive only now, so that one second begins anew.
  void Continue(int64_t now) {
    if (signal() != 0) since_.store(now);
  }
  // The first signal received; 0: none.
  int signal() const { return signal_.load(); }

 private:
  std::atomic<int> signal_{0};
  std::atomic<int64_t> since_{0};
};

// Handles the signals that end a run: SIGINT and SIGTERM, SIGHUP of a closed
// terminal, and SIGUSR1, SIGUSR2 and SIGXCPU, with which batch systems announce
// the time limit. The first signal is a request that the program polls. A
// repeated one (EndRequest) kills the children and ends the program at once
// with exit code 130. Under nohup(1), SIGHUP stays ignored.
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
