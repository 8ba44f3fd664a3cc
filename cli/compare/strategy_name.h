#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// A strategy by its name on the command line: a way to make the data-parallel
// workers agree, a way to cut the model, or both joined by "+", each with its
// arguments behind colons: "parameter_server:ssp:2", "all_reduce:sharded",
// "tensor_parallel:2+parameter_server".
struct StrategyChoice {
  std::string name;  // as it stands in tables
  // What makes a job file's job run so, as for --set; all but the cluster.
  std::vector<std::string> overrides;
  bool has_servers = false;
  int model_ranks = 1;  // workers that hold one model together
};

// One worker, over which every other run is measured.
inline constexpr char kSingle[] = "single";

// InvalidArgument: no such name, an argument that does not belong there, or a
// kind that the job file's schema does not have.
absl::StatusOr<StrategyChoice> ParseStrategy(absl::string_view name);

// All that a comparison runs by default with so many workers, but the job's
// own; some may not be able to run the job.
std::vector<StrategyChoice> DefaultStrategies(int workers);

// The name of a resolved job's own strategy.
std::string StrategyNameOf(const v1::JobSpec& job);

// Takes the ways to cut the model out of a job, so that overrides begin anew.
void ClearStrategyCuts(v1::JobSpec* job);

// For --help: a line for each kind.
std::string StrategyHelp();

}  // namespace tributary
