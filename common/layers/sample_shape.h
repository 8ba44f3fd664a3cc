// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/layers/layer_kind.h"

namespace tributary {

// FLOPs of an exponential and the operations around it.
inline constexpr double kExponential = 10;
// FLOPs per element of a normalization, for its statistics and (backward) for
// their derivative.
inline constexpr double kNormalize = 8;
inline constexpr double kNormalizeBackward = 12;

// Multiplies in double: the numbers of a layer that does not fit may exceed
// 2^63.
inline double Elements(const Shape& shape) {
  double elements = 1;
  for (int64_t extent : shape) elements *= static_cast<double>(extent);
  return elements;
}

// "wants samples whose last extent is in = 3, gets samples of shape [4]".
template <typename... Words>
absl::Status WantsSamples(const Shape& input, const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat("wants samples ", words...,
                                                 ", gets samples of shape ",
                                                 SampleText(input)));
}

// The numbers of a linear layer, also of one that uses another layer's weight.
absl::StatusOr<LayerNumbers> ProductNumbers(const LayerInput& input, int64_t in,
                                            int64_t out, bool bias);

}  // namespace tributary
