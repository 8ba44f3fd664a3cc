// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/compare/compare_jobs.h"
#include "cli/plan/cost_options.h"
#include "cli/run/processes/hosts.h"

namespace tributary {

// Predicts the step time of each job of a comparison. Speeds of links and
// computing that the options do not give are measured first, which takes some
// seconds. Without hosts all processes share this machine's cores. With hosts,
// the first worker's host is measured, and its link to another host stands for
// every link. Returns the contents of prediction.json for each job; an empty
// text: the model cannot predict the job. job_path and overrides: the job file
// of these jobs. Errors as FindCostBasis. Call Interrupts::Install first.
absl::StatusOr<std::vector<std::string>> PredictJobs(
    const CompareJobs& jobs, const std::string& job_path,
    const std::vector<std::string>& overrides, const CostOptions& options,
    const Hosts& hosts);

}  // namespace tributary
