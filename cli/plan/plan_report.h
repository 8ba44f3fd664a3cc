// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/cost/strategies.h"

namespace tributary {

// The results of `tributary plan` for a job.
struct PlanReport {
  std::string job_name;
  int64_t parameter_elements = 0;
  CostInputs inputs;  // without the model
  bool measured = false;
  StrategyPlan plan;
  PredictedStrategy own;  // the job's own strategy
};

// A table of the strategies, fastest first, and a sentence with the winner and
// the number of servers.
std::string PlanText(const PlanReport& report);

// The same for programs: one indented JSON object, in seconds and bytes.
std::string PlanJson(const PlanReport& report);

// One strategy, in the format of prediction.json in a run directory.
std::string PredictionJson(const PredictedStrategy& strategy,
                           const CostInputs& inputs);

}  // namespace tributary
