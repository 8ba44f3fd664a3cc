// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"

namespace tributary {

// The differences of two tensors with the same name and shape.
struct TensorDifference {
  std::string name;  // "0.weight", "optimizer.exp_avg.0.weight"
  int64_t elements = 0;
  int64_t different = 0;  // elements with different bits
  // Over the different elements: the greatest |a - b| and the greatest |a - b|
  // / max(|a|, |b|). Infinite when either value is not finite.
  double max_absolute = 0;
  double max_relative = 0;
};

struct CheckpointDifference {
  // Differences that affect further training: step, place in the data,
  // parameters, states.
  std::vector<std::string> differences;
  // Differences of origin, which do not affect training: job, servers.
  std::vector<std::string> remarks;
  std::vector<TensorDifference> tensors;  // tensors that both have

  // True when nothing that affects further training differs.
  bool equal() const;
};

// Compares whole tensors, so the checkpoints may be of different meshes. Reads
// both checkpoints to the end, piece by piece. Errors as CheckpointReader.
absl::StatusOr<CheckpointDifference> CompareCheckpoints(
    const std::shared_ptr<const CheckpointReader>& a,
    const std::shared_ptr<const CheckpointReader>& b);

// Adds the differences of n pairs of elements.
void CompareElements(const float* a, const float* b, int64_t n,
                     TensorDifference* difference);

std::string DifferenceText(const CheckpointDifference& difference);

}  // namespace tributary
