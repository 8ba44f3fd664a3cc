// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/plan/cost_basis.h"
#include "common/command_line/command_line.h"

namespace tributary {

// Command-line values about machines and links, with units.
struct CostOptions {
  std::string bandwidth;
  std::string latency = "0s";
  std::string burst = "0";
  std::string probe;
  double gflops = 0;
  std::string measurement;
  std::string memory_bandwidth = "20GB";
  double shared_cores = 0;
  std::string sample_shape;

  bool links_known() const { return !bandwidth.empty() || !probe.empty(); }
  bool compute_known() const { return gflops > 0 || !measurement.empty(); }
};

void AddCostOptions(CommandLine& command, CostOptions* options);

// Converts the options. Leaves job, overrides and the choice of measurements to
// the caller. InvalidArgument names the option and the wanted value.
absl::StatusOr<CostQuestions> QuestionsOf(const CostOptions& options);

}  // namespace tributary
