#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/tensor.h"
#include "common/cost/cost_inputs.h"

namespace tributary {

// How fast a worker computed a job's model, as `tributary-worker
// --measure-compute` tells it.
struct ComputeMeasurement {
  // One batch size: seconds of a forward pass with the loss, and of a backward
  // pass.
  struct Pass {
    int64_t rows = 0;
    double forward_seconds = 0;
    double backward_seconds = 0;
  };

  Shape sample_shape;
  std::vector<Pass> passes;     // rows ascending
  double update_seconds = 0;    // one update of all weights
  double memory_bandwidth = 0;  // bytes a second of that update
  int64_t process_bytes = 0;    // of the process with its data, no model yet
  int64_t peak_bytes = 0;
};

// How fast bytes went over a link, as `tributary-worker --measure-links` tells.
struct LinkMeasurement {
  double bandwidth = 0;  // payload bytes a second, the slower direction
  double latency = 0;    // seconds one way
};

// One JSON object on one line, and back. InvalidArgument names what is missing
// or out of range.
std::string ToJson(const ComputeMeasurement& measurement);
std::string ToJson(const LinkMeasurement& measurement);
absl::StatusOr<ComputeMeasurement> ComputeMeasurementOf(
    const std::string& json);
absl::StatusOr<LinkMeasurement> LinkMeasurementOf(const std::string& json);

// What workers have measured side by side, as their mean. InvalidArgument:
// none, or they have not done the same.
absl::StatusOr<ComputeMeasurement> MeanOf(
    const std::vector<ComputeMeasurement>& measurements);

// The speed behind a measurement of this model. Two batch sizes tell what a
// pass takes whatever the batch from what it takes a sample.
ComputeSpeed SpeedOf(const ComputeMeasurement& measurement,
                     const ModelCosts& model);

}  // namespace tributary
