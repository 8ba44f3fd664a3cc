// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tributary::testing {

// Simulates that the power of a machine fails. POSIX promises only what was
// synced; some file systems keep more, such as every name or every byte.
class PowerCut {
 public:
  struct Survivors {
    bool names = false;  // all names survive, synced or not
    bool bytes = false;  // all bytes of files whose names survive
  };

  // Simulates power cuts of `folder`, which must not contain symbolic links.
  // All that is synced is copied to `copies`, an empty folder elsewhere.
  PowerCut(std::string folder, std::string copies);

  // NAME=VALUE of the programs that write to the folder, from the folder's
  // start on.
  std::vector<std::string> Environment() const;

  // Reduces the folder to the content that a power cut would leave. The
  // programs that write to it must have ended.
  void Happen(const Survivors& survivors) const;

 private:
  const std::string folder_, copies_;
};

}  // namespace tributary::testing
