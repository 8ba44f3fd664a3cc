// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tributary::testing {

// The power of a machine fails. POSIX promises only what was synced; some file
// systems keep more, such as every name or every byte.
class PowerCut {
 public:
  struct Survivors {
    bool names = false;  // whatever was created, renamed or removed
    bool bytes = false;  // of the files whose names survive
  };

  // Of `folder`, which has no symbolic links. `copies` is an empty folder
  // outside of it.
  PowerCut(std::string folder, std::string copies);

  // NAME=VALUE of the programs that write to the folder, from its start on.
  std::vector<std::string> Environment() const;

  // Leaves in the folder what a power cut would. Its programs have ended.
  void Happen(const Survivors& survivors) const;

 private:
  const std::string folder_, copies_;
};

}  // namespace tributary::testing
