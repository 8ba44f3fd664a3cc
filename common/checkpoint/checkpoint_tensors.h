// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/checkpoint/planned_checkpoint.h"

namespace tributary {

// The tensors of a checkpoint, by the names that people see. The tensors are
// whole and have the same names whichever mesh of workers has written the
// checkpoint. Thread-safe.
class CheckpointTensors {
 public:
  static absl::StatusOr<CheckpointTensors> Of(
      const std::shared_ptr<const CheckpointReader>& reader, bool with_state);

  // The weights in the model's order. `with_state` adds, for each state of the
  // optimizer, its tensors in that order, named "optimizer.STATE.PARAMETER".
  const ParameterSpecs& specs() const { return specs_; }
  bool is_weight(size_t index) const { return index < num_weights_; }

  // Reads elements of specs()[index] from `begin` on. Errors as
  // CheckpointReader::ReadRange.
  absl::Status Read(size_t index, int64_t begin,
                    absl::Span<float> values) const {
    return checkpoint_->ReadRange(static_cast<int>(index / num_weights_),
                                  static_cast<int>(index % num_weights_), begin,
                                  values);
  }

 private:
  CheckpointTensors(std::unique_ptr<const PlannedCheckpoint> checkpoint,
                    size_t num_weights, ParameterSpecs specs)
      : checkpoint_(std::move(checkpoint)),
        num_weights_(num_weights),
        specs_(std::move(specs)) {}

  std::unique_ptr<const PlannedCheckpoint> checkpoint_;
  size_t num_weights_;
  ParameterSpecs specs_;
};

}  // namespace tributary
