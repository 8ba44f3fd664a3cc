// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tributary {

// The measurements that `tributary-worker` makes instead of training.
struct MeasurementOptions {
  std::string job_path;  // --measure-compute
  std::vector<std::string> overrides;
  std::vector<int64_t> rows;  // batch sizes; none: only describe the data
  std::string link;           // --measure-links HOST:PORT
  std::string serve_links;    // --serve-links HOST:PORT
  double serve_seconds = 0;   // serve this long; 0: forever

  bool wanted() const {
    return !job_path.empty() || !link.empty() || !serve_links.empty();
  }
};

// Prints the result as one line of JSON (common/cost/measurement.h) on standard
// output. --serve-links prints "listening on port N" and serves.
absl::Status RunMeasurement(const MeasurementOptions& options);

}  // namespace tributary
