#pragma once

#include <sys/types.h>

namespace tributary {

// SIGINT and SIGTERM. The first is a request that the program looks at; the
// second kills the children and ends the program at once with exit code 130.
class Interrupts {
 public:
  static void Install();
  // The first signal that came; 0: none.
  static int Requested();

  // Process groups that the second signal kills.
  static void KillWithUs(pid_t group);
  static void Forget(pid_t group);
};

}  // namespace tributary
