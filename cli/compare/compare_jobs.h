// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/compare/strategy_name.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The jobs of a comparison. They start from the same initial weights and see
// the same batches in the same order, whatever their number of workers.
struct CompareJob {
  std::string name;    // of the strategy
  std::string folder;  // within the comparison's directory
  v1::JobSpec job;     // resolved
};

struct CompareJobs {
  std::vector<CompareJob> jobs;    // the single process first
  std::vector<std::string> notes;  // which jobs were left out, and why
};

struct CompareJobsOptions {
  v1::JobSpec job;  // resolved; batch_size becomes global_batch_size
  std::vector<StrategyChoice>
      strategies;            // empty: the job's own and all others
  std::vector<int> workers;  // empty: the job's
  std::vector<int> servers;  // empty: the job's, at least one
};

// InvalidArgument: a requested strategy cannot run the job. A default strategy
// that cannot run it is left out, with a note.
absl::StatusOr<CompareJobs> MakeCompareJobs(const CompareJobsOptions& options);

}  // namespace tributary
