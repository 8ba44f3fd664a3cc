// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/checkpoint/checkpoint_diff.h"
#include "cli/replay/recorded_run.h"
#include "common/base/parameter_spec.h"

namespace tributary {

// The tensors of a checkpoint or of a file of weights, read one after the
// other.
class RecordedTensors {
 public:
  // Errors as CheckpointReader and SafetensorsReader.
  static absl::StatusOr<std::unique_ptr<RecordedTensors>> Open(
      const RecordedState& state);
  virtual ~RecordedTensors() = default;

  // The weights in the model's order. Then come the optimizer's states, if the
  // record has them, named "optimizer.STATE.PARAMETER".
  virtual const ParameterSpecs& specs() const = 0;
  virtual absl::StatusOr<std::vector<float>> Read(size_t index) const = 0;
};

// The tensors whose bits differ, in the order of `a`. Tensors that only one
// record has are left out: weights without the optimizer's state have fewer.
// InvalidArgument: the shapes of a tensor differ.
absl::StatusOr<std::vector<TensorDifference>> DifferentTensors(
    const RecordedState& a, const RecordedState& b);

}  // namespace tributary
