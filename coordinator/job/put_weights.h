// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/job/final_weights.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Assembles the final weights of a job without servers. The first holder of
// each parameter sends it piece by piece. A plain object: its owner locks.
class PutWeights {
 public:
  // Forgets all pieces; `parameters` are those of the plan.
  void Begin(const ParameterSpecs& parameters);

  // Adds the parameter's next piece; ignores a piece that arrived before.
  // OutOfRange: this is not the next piece, so the sender starts this parameter
  // again. InvalidArgument: the piece is of another step or exceeds the
  // parameter. DataLoss: wrong checksum.
  absl::Status Put(const v1::PutWeightsRequest& request);

  bool complete() const {
    return !weights_.parameters.empty() &&
           complete_ == weights_.parameters.size();
  }
  // Parameters with missing pieces.
  std::vector<size_t> Missing() const;
  const FinalWeights& weights() const { return weights_; }

 private:
  FinalWeights weights_;
  std::vector<int64_t> come_;  // elements received, by parameter
  size_t complete_ = 0;        // complete parameters
};

}  // namespace tributary
