#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/tensor.h"
#include "common/cost/cost_inputs.h"
#include "common/cost/predict_step.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The job's strategy block as the cost model takes it.
StrategyShape ShapeOfJob(const v1::JobSpec& job);

// The job's own strategy, batch and optimizer as the cost model takes them, for
// job.cluster.workers; model, cluster and compute are left to the caller. The
// batch of all workers is what stays the same whatever the strategy.
CostInputs InputsOfJob(const v1::JobSpec& job);

// The shape of a sample as far as the job tells it: of texts, and where a
// linear layer is the first that wants one. FailedPrecondition: the data must
// say it.
absl::StatusOr<Shape> SampleShapeOf(const v1::JobSpec& job);

// What a strategy is called: "parameter_server, 2 servers", "data 2 x tensor 2,
// all_reduce".
std::string StrategyText(const StrategyShape& shape, int workers);

struct PredictedStrategy {
  std::string name;
  StrategyShape shape;
  int workers = 1;  // processes that compute
  Prediction prediction;
};

// The strategy that `inputs` name. Errors as PredictStep's.
absl::StatusOr<PredictedStrategy> PredictOwn(const CostInputs& inputs);

struct StrategyPlan {
  std::vector<PredictedStrategy> strategies;
  size_t fastest = 0;
  // Of the parameter server alone: the number of servers, from 1 to twice the
  // workers, beyond which no more servers save a hundredth of the step.
  int best_servers = 1;
  // What the job cannot run so, and why.
  struct LeftOut {
    std::string name;
    std::string why;
  };
  std::vector<LeftOut> left_out;
};

// Whether a job may have this strategy with so many workers.
using StrategyCheck = std::function<absl::Status(const StrategyShape&, int)>;

// Predicts every strategy that `inputs.workers` workers can run: one worker
// alone, parameter server with `servers` and with the best number of servers,
// all-reduce, sharded, threads of one process, and meshes with tensor and
// pipeline parallelism over both. Of micro-batches the best number. What
// `check` refuses or the model cannot be cut into is left out. Errors as
// PredictStep's for the parameter server; InvalidArgument also: nothing is
// left.
absl::StatusOr<StrategyPlan> PlanStrategies(const CostInputs& inputs,
                                            int servers,
                                            const StrategyCheck& check);

}  // namespace tributary
