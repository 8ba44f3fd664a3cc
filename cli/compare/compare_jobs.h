#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/compare/strategy_name.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// What a comparison runs: jobs that see the same batches in the same order from
// the same initial weights, however many workers they have.
struct CompareJob {
  std::string name;    // of the strategy
  std::string folder;  // within the comparison's
  v1::JobSpec job;     // resolved
};

struct CompareJobs {
  std::vector<CompareJob> jobs;    // the single process first
  std::vector<std::string> notes;  // what was left out, and why
};

struct CompareJobsOptions {
  v1::JobSpec job;  // resolved; samples per worker become those of all workers
  std::vector<StrategyChoice>
      strategies;            // empty: the job's own and all others
  std::vector<int> workers;  // empty: the job's
  std::vector<int> servers;  // empty: the job's, or one
};

// InvalidArgument: a strategy that was asked for cannot run the job so. Of
// those by default it is left out, with a note.
absl::StatusOr<CompareJobs> MakeCompareJobs(const CompareJobsOptions& options);

}  // namespace tributary
