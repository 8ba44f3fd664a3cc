// SPDX-License-Identifier: Apache-2.0
#include "common/host/end_on_signal.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace tributary {
namespace {

std::atomic<bool> handles{false};  // EndOnSignal was called
std::atomic<int> told{-1};         // LastWords::write_end_; -1: no LastWords

// SA_RESETHAND has restored the default action and SA_NODEFER leaves the signal
// unblocked, so raise() ends the process. It returns only in process 1 of a
// container.
void EndBy(int signal) {
  raise(signal);
  _exit(128 + signal);
}

void OnSignal(int signal) {
  const int listener = signal == SIGTERM ? told.load() : -1;
  const char byte = 1;
  if (listener < 0 || write(listener, &byte, 1) != 1) EndBy(signal);
}

}  // namespace

void EndOnSignal() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  sigaction(SIGINT, &action, nullptr);
  struct sigaction inherited {};
  sigaction(SIGTERM, nullptr, &inherited);
  if (inherited.sa_handler != SIG_IGN) sigaction(SIGTERM, &action, nullptr);
  handles = true;
}

LastWords::LastWords(std::function<void()> speak) {
  int ends[2];
  int none = -1;
  if (!handles || told != -1 || pipe2(ends, O_CLOEXEC) != 0) return;
  read_end_ = ends[0];
  write_end_ = ends[1];
  thread_ = std::thread([this, speak = std::move(speak)] {
    char byte = 0;
    while (true) {
      const ssize_t got = read(read_end_, &byte, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || byte == 0) return;  // from the destructor
      break;
    }
    speak();
    EndBy(SIGTERM);
  });
  told.compare_exchange_strong(none, write_end_);
}

LastWords::~LastWords() {
  if (!thread_.joinable()) return;
  told = -1;
  const char byte = 0;
  (void)!write(write_end_, &byte, 1);
  thread_.join();
  close(read_end_);
  close(write_end_);
}

}  // namespace tributary
