// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tributary {

// A file that a command is about to write, and what it must not replace.
struct GuardedOutput {
  std::string path;
  std::string option;             // the path's place in the command: "--output"
  std::vector<std::string> read;  // files the command reads; "" is ignored
  std::vector<std::string> runs = {};  // the run directories that it reads
};

// InvalidArgument when the output would replace a file that the command reads,
// a file that a run has written into its directory, or one that the run's
// job.yaml names, such as its data. A run directory that holds the output is
// protected in the same way, also if the command does not read it. Other files
// in a run directory, such as earlier predictions, may be replaced.
absl::Status CheckOutput(const GuardedOutput& output);

}  // namespace tributary
