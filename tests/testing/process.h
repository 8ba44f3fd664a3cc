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

}  // namespace tributary::testing
