// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// A strategy by its name on the command line: a way to synchronize
// data-parallel workers, a way to partition the model, or both joined by "+",
// each with arguments after colons: "parameter_server:ssp:2",
// "all_reduce:sharded", "tensor_parallel:2+parameter_server".
struct StrategyChoice {
  std::string name;  // the name in tables
  // The overrides (as for --set) that select it in a job file, without the
  // cluster.
  std::vector<std::string> overrides;
  bool has_servers = false;
  int model_ranks = 1;  // workers that hold one model together
};

// The name of the baseline to which all other runs are compared: one worker.
inline constexpr char kSingle[] = "single";

// InvalidArgument: an unknown name, a wrong argument, or a kind that the job
// file's schema does not have.
absl::StatusOr<StrategyChoice> ParseStrategy(absl::string_view name);

// The strategies that a comparison runs by default with this many workers,
// without the job's own; some may not be able to run the job.
std::vector<StrategyChoice> DefaultStrategies(int workers);

// The name of a resolved job's own strategy.
std::string StrategyNameOf(const v1::JobSpec& job);

// Removes the partitioning of the model from a job, so that overrides can set
// it.
void ClearStrategyCuts(v1::JobSpec* job);

// Text for --help: a line per kind.
std::string StrategyHelp();

}  // namespace tributary
