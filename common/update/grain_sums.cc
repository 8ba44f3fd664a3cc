// SPDX-License-Identifier: Apache-2.0
#include "common/update/grain_sums.h"

#include <algorithm>
#include <utility>

namespace tributary {

std::vector<std::vector<double>> SumGrains(std::vector<GrainValues> stretches,
                                           int values_per_grain,
                                           size_t num_parameters) {
  std::sort(stretches.begin(), stretches.end(),
            [](const GrainValues& a, const GrainValues& b) {
              return std::make_pair(a.parameter, a.begin) <
                     std::make_pair(b.parameter, b.begin);
            });
  std::vector<std::vector<double>> sums(values_per_grain,
                                        std::vector<double>(num_parameters));
  for (const GrainValues& stretch : stretches) {
    const double* value = stretch.values;
    for (int64_t grain = 0; grain < stretch.num_grains; ++grain) {
      for (int v = 0; v < values_per_grain; ++v) {
        sums[v][stretch.parameter] += *value++;
      }
    }
  }
  return sums;
}

}  // namespace tributary
