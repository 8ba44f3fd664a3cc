// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/interrupts.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace tributary {
namespace {

constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as in shells
constexpr int64_t kSameRequestMicros = 1'000'000;

// Data that a signal handler may use: lock-free atomics. A job has at most 256
// servers and 1024 workers.
std::atomic<int> g_first_signal{0};
std::atomic<int64_t> g_first_micros{0};
std::array<std::atomic<pid_t>, 1280> g_groups{};
static_assert(std::atomic<pid_t>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

int64_t SteadyMicros() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

void OnSignal(int signal) {
  int64_t unset = 0;
  const int64_t now = SteadyMicros();
  g_first_micros.compare_exchange_strong(unset, now);
  int none = 0;
  if (g_first_signal.compare_exchange_strong(none, signal)) return;
  if (MeaningOfRepeated(signal, now - g_first_micros.load()) ==
      RepeatedSignal::kNothing) {
    return;
  }
  for (const std::atomic<pid_t>& group : g_groups) {
    if (const pid_t pid = group.load(); pid > 0) kill(-pid, SIGKILL);
  }
  constexpr char kText[] =
      "\ntributary: interrupted again: all processes were killed, and the run "
      "directory lacks summary.json\n";
  (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(kExitInterrupted);
}

// Replaces the first entry `from` by `to`.
void Replace(pid_t from, pid_t to) {
  for (std::atomic<pid_t>& group : g_groups) {
    pid_t expected = from;
    if (group.compare_exchange_strong(expected, to)) return;
  }
}

}  // namespace

RepeatedSignal MeaningOfRepeated(int signal, int64_t micros_since_first) {
  const bool impatient = signal == SIGINT || signal == SIGTERM;
  return impatient && micros_since_first >= kSameRequestMicros
             ? RepeatedSignal::kEndNow
             : RepeatedSignal::kNothing;
}

void Interrupts::Install() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  for (int signal : {SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  // Training continues when the reader of our output has gone.
  signal(SIGPIPE, SIG_IGN);
}

int Interrupts::Requested() { return g_first_signal.load(); }

void Interrupts::KillWithUs(pid_t group) { Replace(0, group); }

void Interrupts::Forget(pid_t group) { Replace(group, 0); }

}  // namespace tributary
