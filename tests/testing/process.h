// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tributary::testing {

struct ProcessResult {
  int exit_code = -1;  // 128 + signal when a signal killed it
  std::string output;  // stdout and stderr, interleaved
};

// Runs a program until it exits, without a terminal and with empty stdin.
ProcessResult RunProcess(const std::vector<std::string>& command);

// Runs a command that trains into the new folder `run`. Runs it again if the
// job left out a checkpoint, because its disk was slower than its steps.
ProcessResult RunWithEveryCheckpoint(const std::vector<std::string>& command,
                                     const std::string& run);

}  // namespace tributary::testing
