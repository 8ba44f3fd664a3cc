// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/tensor.h"
#include "common/cost/cost_inputs.h"
#include "common/cost/predict_step.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Returns the job's own strategy, batch and optimizer for job.cluster.workers;
// the caller sets model, cluster and compute. The batch of all workers does not
// depend on the strategy.
CostInputs InputsOfJob(const v1::JobSpec& job);

// The shape of a sample if the job determines it: for text, and when the first
// layer that fixes an input width is linear. FailedPrecondition: only the data
// can tell.
absl::StatusOr<Shape> SampleShapeOf(const v1::JobSpec& job);

// The strategy's name as `tributary compare` takes it, and the number of its
// servers: "parameter_server, 2 servers", "tensor_parallel:2+all_reduce",
// "single".
std::string StrategyText(const Strategy& strategy);

// False for one process: a single worker, or a thread for each worker.
bool UsesLinks(const Strategy& strategy);

struct PredictedStrategy {
  std::string name;
  Strategy strategy;
  Prediction prediction;
};

// Predicts the strategy in `inputs`. Errors as PredictStep.
absl::StatusOr<PredictedStrategy> PredictOwn(const CostInputs& inputs);

struct StrategyPlan {
  std::vector<PredictedStrategy> strategies;
  size_t fastest = 0;
  std::optional<size_t> fastest_over_links;  // of those with several processes
  // The best number of servers for the parameter server without parallelism
  // within the model, from 1 to twice the workers. More servers would save less
  // than a twentieth of the step.
  int best_servers = 1;
  // Strategies that cannot run the job, and why.
  struct LeftOut {
    std::string name;
    std::string why;
  };
  std::vector<LeftOut> left_out;
};

// Returns OK if a job may use this strategy, otherwise the reason.
using StrategyCheck = std::function<absl::Status(const Strategy&)>;

// Predicts every strategy for `inputs.strategy.workers` workers: one worker
// alone, parameter server with `servers` and with the best number of servers,
// all-reduce, sharded all-reduce, threads of one process, and meshes with
// tensor and pipeline parallelism over both exchanges. Pipelines use their best
// number of micro-batches. A strategy is left out when `check` refuses it or
// the model cannot be partitioned that way. Errors as PredictStep for the
// parameter server; also InvalidArgument when no strategy remains.
absl::StatusOr<StrategyPlan> PlanStrategies(const CostInputs& inputs,
                                            int servers,
                                            const StrategyCheck& check);

}  // namespace tributary
