#include "common/host/end_on_signal.h"

#include <signal.h>
#include <unistd.h>

namespace tributary {
namespace {

// The default action is back and the signal not blocked, so raise() returns to
// process 1 alone.
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
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace tributary
