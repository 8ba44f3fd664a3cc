// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cost/measurement.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Times, on this machine alone, passes of a resolved job's model on its own
// data for each batch size in `rows`, and one update of its weights. Without
// batch sizes it only describes the data and computes nothing. For a job that
// does not fit its data, errors are those of RunWorker.
absl::StatusOr<ComputeMeasurement> MeasureCompute(const v1::JobSpec& job,
                                                  std::vector<int64_t> rows);

}  // namespace tributary
