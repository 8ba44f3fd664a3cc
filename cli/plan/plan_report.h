#pragma once

#include <string>

#include "common/cost/strategies.h"

namespace tributary {

// What `tributary plan` has worked out for a job.
struct PlanReport {
  std::string job_name;
  int64_t parameter_elements = 0;
  CostInputs inputs;  // without the model
  bool measured = false;
  StrategyPlan plan;
  PredictedStrategy own;  // the job's, with its workers and micro-batches
};

// A table of the strategies, fastest first, and a sentence that names the
// winner and the number of servers.
std::string PlanText(const PlanReport& report);

// The same for a program: one JSON object, indented; seconds and bytes.
std::string PlanJson(const PlanReport& report);

// One strategy of it, as prediction.json in a run directory has it.
std::string PredictionJson(const PredictedStrategy& strategy,
                           const CostInputs& inputs);

}  // namespace tributary
