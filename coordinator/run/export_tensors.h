// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"

namespace tributary {

struct ExportedTensors {
  size_t tensors = 0;
  std::string weights_sha256;
};

// Writes the weights of a checkpoint, and the optimizer's state if
// `with_state`, to a safetensors file, which appears only when it is complete.
// The tensors are those of CheckpointTensors. Every byte that is read is
// checked.
absl::StatusOr<ExportedTensors> ExportTensors(
    const std::shared_ptr<const CheckpointReader>& reader, bool with_state,
    const std::string& output);

}  // namespace tributary
