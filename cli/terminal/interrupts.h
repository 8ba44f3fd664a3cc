// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace tributary {

// Handles SIGINT and SIGTERM. The first signal is a request that the program
// polls; the second kills the children and ends the program at once with exit
// code 130.
class Interrupts {
 public:
  static void Install();
  // The first signal received; 0: none.
  static int Requested();

  // Adds and removes process groups that the second signal kills.
  static void KillWithUs(pid_t group);
  static void Forget(pid_t group);
};

}  // namespace tributary
