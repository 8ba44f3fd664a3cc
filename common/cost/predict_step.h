// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/cost/cost_inputs.h"

namespace tributary {

// The predicted times of a step, within the model's limits
// (docs/parallelism.md). The parts add up to the step.
struct Prediction {
  double step_seconds = 0;
  double compute_seconds = 0;    // forward and backward of the busiest worker
  double exposed_seconds = 0;    // communication that is not hidden
  double optimizer_seconds = 0;  // updates that are not hidden
  double waiting_seconds = 0;    // pipeline bubble and waits for shared cores

  double bytes_sent_per_rank = 0;  // by the busiest worker
  double bytes_per_step = 0;       // by all processes
  double worker_memory = 0;        // bytes, of the largest worker
  double server_memory = 0;        // 0: no servers
};

// Predicts one optimizer step of a job from the costs of its layers
// (CostsOfModel) and the speeds of processes and links. A pure function.
// InvalidArgument names the number that is invalid: workers that are not a
// multiple of tensor x stages, more stages than layers, ...
absl::StatusOr<Prediction> PredictStep(const CostInputs& inputs);

}  // namespace tributary
