// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tributary {

enum class ProcessState {
  kGone,     // there is no such process, or it has ended (a zombie)
  kRuns,     // also while it sleeps
  kStopped,  // by SIGSTOP or a debugger
};

// A process of this machine. `start_ticks`: when it started, in the kernel's
// clock ticks since boot; a process that later has the same pid has another
// value. 0: it is gone.
struct ProcessFacts {
  ProcessState state = ProcessState::kGone;
  uint64_t start_ticks = 0;
};

// Reads /proc/PID/stat.
ProcessFacts LookAtProcess(int64_t pid);

// Reads the text of a /proc/PID/stat (proc(5)). A text that cannot be read says
// that the process is gone.
ProcessFacts ReadProcessStat(absl::string_view stat);

}  // namespace tributary
