#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/service/final_weights.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Puts together the weights that the first holder of each parameter sends piece
// by piece at the end of a job without servers. A plain object: its owner
// locks.
class PutWeights {
 public:
  // Forgets what has come. The parameters of the model.
  void Begin(const ParameterSpecs& parameters);

  // The parameter's next piece, or one that has come before. OutOfRange: not
  // next, so that the sender begins with this parameter anew. InvalidArgument:
  // of another step, or beyond the parameter. DataLoss: wrong checksum.
  absl::Status Put(const v1::PutWeightsRequest& request);

  bool complete() const {
    return !weights_.parameters.empty() &&
           complete_ == weights_.parameters.size();
  }
  // Parameters of which a piece has not come.
  std::vector<size_t> Missing() const;
  const FinalWeights& weights() const { return weights_; }

 private:
  FinalWeights weights_;
  std::vector<int64_t> come_;  // elements of each parameter
  size_t complete_ = 0;        // parameters
};

}  // namespace tributary
