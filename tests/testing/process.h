#pragma once

#include <string>
#include <vector>

namespace tributary::testing {

struct ProcessResult {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string output;  // stdout and stderr, as they came
};

// Runs a program to its end without a terminal; stdin is empty.
ProcessResult RunProcess(const std::vector<std::string>& command);

}  // namespace tributary::testing
