// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tributary {

// How the ranks' values are averaged if their mean replaces a running average
// (ParameterSpec with momentum 1), such as a buffer of a program.
enum class ReplacedMean {
  kAsGradients,  // like gradients: the sum rounds in float32
  // In double: the mean of equal values is this value, however many ranks there
  // are and whatever their weights.
  kExact,
  kOfRank0,  // rank 0's value, or the old value if rank 0 has no samples
};

// mean[i] = (sum[i] + the sum over p of weights[p] parts[p][i]) / (weight + the
// sum of the weights), in double. A null `sum` stands for zeros. Some weight
// must be above 0.
inline void MeanInDouble(int64_t n, int count, const float* const* parts,
                         const float* weights, const double* sum, double weight,
                         float* mean) {
  constexpr int64_t kTile = 256;  // stays in the cache
  for (int p = 0; p < count; ++p) weight += weights[p];
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t size = std::min(kTile, n - begin);
    std::array<double, kTile> totals = {};
    if (sum != nullptr) std::copy_n(sum + begin, size, totals.begin());
    for (int p = 0; p < count; ++p) {
      const double factor = weights[p];
      const float* const part = parts[p] + begin;
      for (int64_t i = 0; i < size; ++i) totals[i] += factor * part[i];
    }
    for (int64_t i = 0; i < size; ++i) {
      mean[begin + i] = static_cast<float>(totals[i] / weight);
    }
  }
}

}  // namespace tributary
