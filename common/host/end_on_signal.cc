// SPDX-License-Identifier: Apache-2.0
#include "common/host/end_on_signal.h"

#include <signal.h>
#include <unistd.h>

namespace tributary {
namespace {

// SA_RESETHAND has restored the default action and SA_NODEFER leaves the signal
// unblocked, so raise() ends the process. It returns only in process 1 of a
// container.
void OnSignal(int signal) {
  raise(signal);
  _exit(128 + signal);
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
}

}  // namespace tributary
