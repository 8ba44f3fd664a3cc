#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/run/hosts.h"
#include "common/cost/cost_inputs.h"
#include "common/layers/model_costs.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// What the predictions of one job have in common, whatever its strategy.
struct CostBasis {
  ModelCosts model;
  ClusterShape cluster;
  ComputeSpeed compute;
};

// How to find it out.
struct CostQuestions {
  std::string job_path;
  std::vector<std::string> overrides;  // of the job file
  // Time the job's model on `near` with these batch sizes; none: compute is
  // given. Samples of a worker and a few less make a good pair. Where cores
  // are shared, up to so many workers do it at once, one a core.
  std::vector<int64_t> rows;
  int workers = 1;
  std::string measurement;  // a file with such times; empty: none
  // Measure the link from `near` to this HOST:PORT; empty: it is given.
  std::string probe;
  // Instead: to `far`. This machine to itself where they are the same.
  bool measure_link = false;
  Host near, far;
  Shape sample_shape;  // empty: the job or its data tell it
  ClusterShape cluster;
  ComputeSpeed compute;
};

// Asks the job, and the worker program where the job cannot tell. Interrupts::
// Install comes first. InvalidArgument: the samples do not fit the model; other
// codes: a measurement failed.
absl::StatusOr<CostBasis> FindCostBasis(const v1::JobSpec& job,
                                        const CostQuestions& questions);

// Batch sizes that tell how fast workers of a data-parallel step compute: as
// many samples as each has, and a fourth of them.
std::vector<int64_t> RowsToMeasure(const CostInputs& inputs);

// What PredictStep wants for a job of this basis, with the job's own strategy,
// batch and workers. The basis outlives it.
CostInputs InputsFrom(const v1::JobSpec& job, const CostBasis& basis);

}  // namespace tributary
