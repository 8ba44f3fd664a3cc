#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"

namespace tributary {

// How two tensors of one name and shape differ.
struct TensorDifference {
  std::string name;  // "0.weight", "optimizer.exp_avg.0.weight"
  int64_t elements = 0;
  int64_t different = 0;  // elements whose bits are not the same
  // Over those: greatest |a - b|, and greatest |a - b| / max(|a|, |b|).
  // Infinite where one of the two is no finite number.
  double max_absolute = 0;
  double max_relative = 0;
};

struct CheckpointDifference {
  // Of what training goes on from: step, place in the data, parameters, states.
  std::vector<std::string> differences;
  // Of where it came from, which changes nothing: job, servers.
  std::vector<std::string> remarks;
  std::vector<TensorDifference> tensors;  // that both have

  // Nothing that training goes on from differs.
  bool equal() const;
};

// Reads both to the end, a piece of each at a time. Errors as CheckpointReader.
absl::StatusOr<CheckpointDifference> CompareCheckpoints(
    const CheckpointReader& a, const CheckpointReader& b);

// Adds what n pairs of elements say.
void CompareElements(const float* a, const float* b, int64_t n,
                     TensorDifference* difference);

std::string DifferenceText(const CheckpointDifference& difference);

}  // namespace tributary
