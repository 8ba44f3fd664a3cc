// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "coordinator/run/checkpoint_tensors.h"

namespace tributary {

// Writes tensors of a checkpoint to a safetensors file, which appears when it
// is whole, and returns the sha256 of the weights among them. Every byte that
// is read is checked.
absl::StatusOr<std::string> ExportTensors(
    const CheckpointReader& reader,
    const std::vector<CheckpointTensor>& tensors, const std::string& output);

}  // namespace tributary
