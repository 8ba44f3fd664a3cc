// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

namespace tributary {

// Makes SIGTERM and SIGINT end this process at once. The process is killed by
// the signal. Process 1 of a container, which the default action does not kill,
// exits with code 128 + signal. SIGTERM stays ignored if the program that
// started this one ignores it, as a launcher does when only the coordinator is
// to end its members (cli/run/processes/slurm.h). Call it first in main.
//
// For daemons, which may die at any point: they write files aside and rename
// them, and other processes notice their expired lease.
void EndOnSignal();

// While this object lives, the first SIGTERM calls `speak` on this object's
// thread and then ends the process. A second SIGTERM, or a SIGINT, ends the
// process at once. Does nothing in a process that has not called EndOnSignal,
// or that already has a LastWords.
class LastWords {
 public:
  explicit LastWords(std::function<void()> speak);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

 private:
  int read_end_ = -1;  // of a pipe; gets a byte from handler or destructor
  int write_end_ = -1;
  std::thread thread_;
};

}  // namespace tributary
