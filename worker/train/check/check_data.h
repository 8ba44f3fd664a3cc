// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job_file.h"

namespace tributary {

// CheckData reads data up to this sum of the files' sizes. It leaves larger
// data to the workers, which read them in any case.
inline constexpr int64_t kMostCheckedBytes = int64_t{1} << 30;

// Reads the data of a job and compares its shapes and values with the model:
// the width of samples with the first layer, targets and classes with the
// outputs, token ids with the embedding, the samples' steps with the warm-up of
// the learning rate. Also refuses `device: cuda` on a machine without a device.
// InvalidArgument in one sentence that starts with the place in the job file:
// "job.yaml:7: ...". Returns lines of the same form about data that fit but
// that the writer of the job may not have meant, such as a step larger than the
// training set; or "". Also reads the tensors of model.initialize_from, whose
// values must be finite, and the classes of its run (CheckInitialMeaning).
// `record` receives a JSON object with the numbers and checksums of the samples
// (DataRecord) and the "checksum" of the file of "initial_weights", as far as
// they were read, or "" if nothing was read.
absl::StatusOr<std::string> CheckData(const PlacedJob& job,
                                      std::string* record = nullptr);

// The same for a job file, as ReadPlacedJob reads it.
absl::StatusOr<std::string> CheckDataOfFile(
    const std::string& path, const std::vector<std::string>& overrides,
    std::string* record = nullptr);

}  // namespace tributary
