// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/compare_predictions.h"

#include <algorithm>
#include <cstdint>
#include <thread>

#include "cli/plan/cost_basis.h"
#include "cli/plan/plan_report.h"
#include "common/cost/strategies.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// The smallest and the largest number of samples that a worker computes at
// once.
std::vector<int64_t> RowsToMeasure(const CompareJobs& jobs) {
  int64_t fewest = INT64_MAX, most = 1;
  for (const CompareJob& job : jobs.jobs) {
    const std::vector<int64_t> rows =
        tributary::RowsToMeasure(InputsOfJob(job.job));
    fewest = std::min(fewest, rows.front());
    most = std::max(most, rows.back());
  }
  return {fewest, most};
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PredictJobs(
    const CompareJobs& jobs, const std::string& job_path,
    const std::vector<std::string>& overrides, const CostOptions& options,
    const Hosts& hosts) {
  TRIBUTARY_ASSIGN_OR_RETURN(CostQuestions questions, QuestionsOf(options));
  questions.job_path = job_path;
  questions.overrides = overrides;
  questions.measure_link = !options.links_known();
  questions.near = hosts.Worker(0);
  questions.far = hosts.FarFromFirstWorker();
  questions.insecure_groups = hosts.insecure_groups();
  if (!options.compute_known()) {
    questions.rows = RowsToMeasure(jobs);
    for (const CompareJob& job : jobs.jobs) {
      questions.workers =
          std::max(questions.workers, job.job.cluster().workers());
    }
  }
  if (questions.cluster.shared_cores <= 0 && !hosts.given()) {
    questions.cluster.shared_cores =
        std::max(1u, std::thread::hardware_concurrency());
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const CostBasis basis,
                             FindCostBasis(jobs.jobs[0].job, questions));
  std::vector<std::string> predictions;
  for (const CompareJob& job : jobs.jobs) {
    const CostInputs inputs = InputsFrom(job.job, basis);
    const absl::StatusOr<PredictedStrategy> predicted = PredictOwn(inputs);
    predictions.push_back(predicted.ok() ? PredictionJson(*predicted, inputs)
                                         : "");
  }
  return predictions;
}

}  // namespace tributary
