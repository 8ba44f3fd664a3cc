#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/coordinator/final_weights.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Puts together the weights that a worker sends piece by piece at the end of a
// job without servers. A plain object: its owner locks.
class PutWeights {
 public:
  // Forgets what has come. The parameters of the model.
  void Begin(const ParameterSpecs& parameters);

  // The next piece, or one that has come before. InvalidArgument: not next, of
  // another step, or beyond the parameter; DataLoss: wrong checksum.
  absl::Status Put(const v1::PutWeightsRequest& request);

  bool complete() const {
    return !weights_.parameters.empty() &&
           parameter_ == weights_.parameters.size();
  }
  const FinalWeights& weights() const { return weights_; }

 private:
  FinalWeights weights_;
  size_t parameter_ = 0;  // the next element: of this parameter, at offset_
  int64_t offset_ = 0;
};

}  // namespace tributary
