// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tributary {

// The weight of each rank's mean gradient in the mean over `total` samples: the
// rank's samples / total, or 0 for a rank without samples. For weighted sums in
// rank order.
inline std::vector<float> SampleWeights(const std::vector<uint64_t>& samples,
                                        double total) {
  std::vector<float> weights(samples.size(), 0.0f);
  for (size_t rank = 0; rank < samples.size(); ++rank) {
    if (samples[rank] == 0) continue;
    weights[rank] =
        static_cast<float>(static_cast<double>(samples[rank]) / total);
  }
  return weights;
}

// The same with the sum of `samples` as the total.
inline std::vector<float> SampleWeights(const std::vector<uint64_t>& samples) {
  double total = 0;
  for (uint64_t s : samples) total += static_cast<double>(s);
  return SampleWeights(samples, total);
}

}  // namespace tributary
