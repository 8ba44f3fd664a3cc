#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/layers/layer_kind.h"

namespace tributary {

// FLOPs of an exponential with what is around it.
inline constexpr double kExponential = 10;
// FLOPs an element of a normalization: its statistics, and their derivative.
inline constexpr double kNormalize = 8;
inline constexpr double kNormalizeBackward = 12;

inline double Elements(const Shape& shape) {
  return static_cast<double>(NumElements(shape));
}

// "wants samples whose last extent is in = 3, gets samples of shape [4]".
template <typename... Words>
absl::Status WantsSamples(const Shape& input, const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat("wants samples ", words...,
                                                 ", gets samples of shape ",
                                                 SampleText(input)));
}

// A linear layer's numbers, also of one that has its weight elsewhere.
absl::StatusOr<LayerNumbers> ProductNumbers(const LayerInput& input, int64_t in,
                                            int64_t out, bool bias);

}  // namespace tributary
