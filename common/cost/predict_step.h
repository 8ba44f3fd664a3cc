#pragma once

#include "absl/status/statusor.h"
#include "common/cost/cost_inputs.h"

namespace tributary {

// A step as it will be, as far as the model tells (docs/parallelism.md says
// what it leaves out). The parts add up to the step.
struct Prediction {
  double step_seconds = 0;
  double compute_seconds = 0;    // forward and backward of the busiest worker
  double exposed_seconds = 0;    // communication that nothing hides
  double optimizer_seconds = 0;  // updates that nothing hides
  double waiting_seconds = 0;    // a pipeline's bubble; for shared cores

  double bytes_sent_per_rank = 0;  // by a worker, the busiest
  double bytes_per_step = 0;       // by all processes
  double worker_memory = 0;        // bytes, of the largest worker
  double server_memory = 0;        // 0: no servers
};

// Predicts one optimizer step of a job from what its layers cost
// (CostsOfModel) and how fast processes compute and links carry:
//
//   absl::StatusOr<Prediction> PredictStep(const CostInputs& inputs);
//
// A pure function. InvalidArgument says which number does not fit: the workers
// are no multiple of tensor x stages, more stages than layers, ...
absl::StatusOr<Prediction> PredictStep(const CostInputs& inputs);

}  // namespace tributary
