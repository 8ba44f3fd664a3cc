// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/run/processes/hosts.h"
#include "common/cost/cost_inputs.h"
#include "common/layers/model_costs.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The inputs that the predictions of one job share under all strategies.
struct CostBasis {
  ModelCosts model;
  ClusterShape cluster;
  ComputeSpeed compute;
};

// The known figures of a CostBasis, and the questions that need a measurement.
struct CostQuestions {
  std::string job_path;
  std::vector<std::string> overrides;  // of the job file
  // Batch sizes to time on `near` with the job's model; empty: compute is
  // given. The samples of a worker and a fraction of them make a good pair. If
  // cores are shared, up to `workers` workers run at once, one per core.
  std::vector<int64_t> rows;
  int workers = 1;
  std::string measurement;  // a file with such times; empty: none
  // The HOST:PORT to measure the link from `near`; empty: the link is given.
  std::string probe;
  // Measures the link from `near` to `far` instead; they may be the same
  // machine.
  bool measure_link = false;
  Host near, far;
  bool insecure_groups = false;  // `far` may listen to other machines
  Shape sample_shape;            // empty: take it from the job or its data
  ClusterShape cluster;
  ComputeSpeed compute;
};

// Determines the basis from the job, and measures with the worker program what
// the job does not tell. Call Interrupts::Install first. InvalidArgument: the
// samples do not fit the model; other codes: a measurement failed.
absl::StatusOr<CostBasis> FindCostBasis(const v1::JobSpec& job,
                                        const CostQuestions& questions);

// Batch sizes that show how fast the workers of a data-parallel step compute:
// the samples of one worker, and a fourth of them.
std::vector<int64_t> RowsToMeasure(const CostInputs& inputs);

// The inputs of PredictStep for a job with this basis, with the job's own
// strategy, batch and workers. The basis must outlive them.
CostInputs InputsFrom(const v1::JobSpec& job, const CostBasis& basis);

}  // namespace tributary
