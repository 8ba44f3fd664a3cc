#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/compare/compare_jobs.h"
#include "cli/plan/cost_options.h"
#include "cli/run/hosts.h"

namespace tributary {

// Predicts a step of each job of a comparison; what the options do not say of
// links and of computing is measured first, which takes some seconds. Without
// hosts all processes share this machine's cores; with hosts the first worker's
// computes, and its link to another one counts for all. Returns what
// prediction.json holds, for each job; empty: the model cannot tell.
// job_path, overrides: of the job file that they come from. Errors as
// FindCostBasis'. Interrupts::Install comes first.
absl::StatusOr<std::vector<std::string>> PredictJobs(
    const CompareJobs& jobs, const std::string& job_path,
    const std::vector<std::string>& overrides, const CostOptions& options,
    const Hosts& hosts);

}  // namespace tributary
