// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/plan/partition_plan.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Keeps the residual: the part that the encodings of a rank's gradients have
// left out. It is added to the next gradient before encoding, so that
// everything is sent in the end (1-bit SGD: Seide et al., Interspeech 2014;
// Deep Gradient Compression: Lin et al., ICLR 2018; a proof that SGD then
// converges at its usual rate: Karimireddy et al., ICML 2019). Several threads
// may encode different slices at the same time.
class ErrorFeedback {
 public:
  // Creates zero residuals for the parameters that the rank pushes encoded, or
  // no residuals when the plan has no error feedback. `partition` is the
  // plan's.
  ErrorFeedback(const v1::Plan& plan, const PartitionPlan& partition,
                uint32_t rank);

  // One pointer for each parameter: null when the parameter has no residual,
  // because the rank does not push it or pushes it as float32. Empty when the
  // plan has no error feedback.
  absl::Span<float* const> residuals() const { return pointers_; }

  // Encodes `gradient` plus the slice's residual to slice.gradient_bytes()
  // bytes at `out`; gradient[0] is the slice's first element. The residual
  // becomes the part that these bytes leave out. It stays where the sum is not
  // finite; the server refuses that. Without a residual, encodes the gradient
  // alone. Returns `crc` extended by the bytes (crc32c.h).
  uint32_t Encode(const Slice& slice, const float* gradient, char* out,
                  uint32_t crc);

 private:
  std::vector<std::vector<float>> residuals_;  // [parameter]; empty: none
  std::vector<float*> pointers_;
};

}  // namespace tributary
