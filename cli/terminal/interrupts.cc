// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/interrupts.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

namespace tributary {
namespace {

constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as in shells
constexpr int64_t kSameRequestMicros = 1'000'000;

// Data that a signal handler may use: lock-free atomics. A job has at most 256
// servers and 1024 workers.
EndRequest g_request;
std::array<std::atomic<pid_t>, 1280> g_groups{};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<pid_t>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

int64_t SteadyMicros() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

// A signal that came while the program was stopped arrives together with
// SIGCONT, maybe earlier and in another thread.
void WaitForContinue() {
  const int error = errno;
  constexpr timespec kMoment{.tv_sec = 0, .tv_nsec = 50'000'000};
  nanosleep(&kMoment, nullptr);
  errno = error;
}

void OnContinue(int) { g_request.Continue(SteadyMicros()); }

void OnSignal(int signal) {
  const int64_t now = SteadyMicros();
  if (g_request.Receive(signal, now) == RepeatedSignal::kNothing) return;
  WaitForContinue();
  if (g_request.Receive(signal, now) == RepeatedSignal::kNothing) return;
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

RepeatedSignal EndRequest::Receive(int signal, int64_t now) {
  int64_t unset = 0;
  since_.compare_exchange_strong(unset, now);
  int none = 0;
  if (signal_.compare_exchange_strong(none, signal)) {
    return RepeatedSignal::kNothing;
  }
  const bool impatient = signal == SIGINT || signal == SIGTERM;
  return impatient && now - since_.load() >= kSameRequestMicros
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
  struct sigaction continued {};
  continued.sa_handler = OnContinue;
  continued.sa_flags = SA_RESTART;
  sigaction(SIGCONT, &continued, nullptr);
  // Training continues when the reader of our output has gone.
  signal(SIGPIPE, SIG_IGN);
}

int Interrupts::Requested() { return g_request.signal(); }

void Interrupts::KillWithUs(pid_t group) { Replace(0, group); }

void Interrupts::Forget(pid_t group) { Replace(group, 0); }

}  // namespace tributary
