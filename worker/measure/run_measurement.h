#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tributary {

// What `tributary-worker` measures instead of working for a job.
struct MeasurementOptions {
  std::string job_path;  // --measure-compute
  std::vector<std::string> overrides;
  std::vector<int64_t> rows;  // batch sizes; none: what the data are, alone
  std::string link;           // --measure-links HOST:PORT
  std::string serve_links;    // --serve-links HOST:PORT
  double serve_seconds = 0;   // for so long; 0: for ever

  bool wanted() const {
    return !job_path.empty() || !link.empty() || !serve_links.empty();
  }
};

// Prints the result as one line of JSON (common/cost/measurement.h) on standard
// output; --serve-links prints "listening on port N" and serves.
absl::Status RunMeasurement(const MeasurementOptions& options);

}  // namespace tributary
