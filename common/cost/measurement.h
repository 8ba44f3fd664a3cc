// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/tensor.h"
#include "common/cost/cost_inputs.h"

namespace tributary {

// How fast a worker computed a job's model, as `tributary-worker
// --measure-compute` reports it.
struct ComputeMeasurement {
  // Times for one batch size: a forward pass with the loss, and a backward
  // pass.
  struct Pass {
    int64_t rows = 0;
    double forward_seconds = 0;
    double backward_seconds = 0;
  };

  Shape sample_shape;
  std::vector<Pass> passes;     // sorted by rows
  double update_seconds = 0;    // one update of all weights
  double memory_bandwidth = 0;  // bytes per second of that update
  int64_t process_bytes = 0;    // of the process with its data, without a model
  int64_t peak_bytes = 0;
};

// The speed of a link, as `tributary-worker --measure-links` reports it.
struct LinkMeasurement {
  double bandwidth = 0;  // payload bytes per second, slower direction
  double latency = 0;    // seconds one way
};

// Convert to one line of JSON and back. InvalidArgument names what is missing
// or out of range.
std::string ToJson(const ComputeMeasurement& measurement);
std::string ToJson(const LinkMeasurement& measurement);
absl::StatusOr<ComputeMeasurement> ComputeMeasurementOf(
    const std::string& json);
absl::StatusOr<LinkMeasurement> LinkMeasurementOf(const std::string& json);

// Combines the measurements of workers that ran at the same time: the mean of
// times and bandwidths, the maximum of memory. InvalidArgument: there are none,
// or they measured different passes.
absl::StatusOr<ComputeMeasurement> MeanOf(
    const std::vector<ComputeMeasurement>& measurements);

// The speed that explains a measurement of this model. The times of two batch
// sizes give the fixed time of a pass, which does not depend on the batch, and
// the time per sample.
ComputeSpeed SpeedOf(const ComputeMeasurement& measurement,
                     const ModelCosts& model);

}  // namespace tributary
