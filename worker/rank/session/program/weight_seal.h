// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/parameter_spec.h"

namespace tributary {

// Finds what a program writes into its weights between two steps, which the
// servers would overwrite. Checks a small parameter as a whole, and one in
// kStride runs of a large one, different runs in each step. So it finds every
// change of kStride consecutive runs at once, and a smaller change within
// kStride steps if the program repeats it. Running averages may change.
class WeightSeal {
 public:
  static constexpr int64_t kRun = 64;  // elements
  static constexpr int64_t kStride = 16;
  static constexpr int64_t kSmall = kStride * 1024;  // elements

  // weights: of each parameter. The runs are those of `step`.
  void Close(const ParameterSpecs& parameters,
             const std::vector<float*>& weights, int64_t step);
  // The first parameter that has changed since Close; -1: none.
  int FirstChanged(const ParameterSpecs& parameters,
                   const std::vector<float*>& weights) const;

 private:
  int64_t step_ = 0;
  std::vector<uint32_t> sums_;  // of each parameter
};

}  // namespace tributary
