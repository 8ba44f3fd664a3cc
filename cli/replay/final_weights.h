// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/checkpoint/checkpoint_diff.h"
#include "cli/replay/recorded_run.h"

namespace tributary {

// A file of final weights that differs from what the run has written.
struct ChangedWeights {
  std::string path;
  std::string recorded;  // sha256, of summary.json
  std::string found;     // sha256, of the file
  // The first tensor that differs from the run's checkpoint of the same step;
  // its name is empty if there is no such checkpoint.
  TensorDifference tensor;
};

// Compares the file of final weights with the checksum in summary.json.
// nullopt: they agree, or the run has recorded no checksum. NotFound: the file
// is missing. Other errors as SafetensorsReader.
absl::StatusOr<std::optional<ChangedWeights>> FindChangedWeights(
    const RecordedRun& run);

// "the sha256 of its weights begins with 01ab, and summary.json records 23cd".
std::string ChecksumsText(const ChangedWeights& changed);

}  // namespace tributary
