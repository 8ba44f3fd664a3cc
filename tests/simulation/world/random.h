// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary::simulation {

// The only source of randomness in a simulation: derived from one seed and the
// same on every machine (splitmix64, Steele et al., OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // [0, 1)
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  bool Chance(double p) { return Uniform() < p; }
  // From low to high, both included.
  int64_t Between(int64_t low, int64_t high) {
    return low +
           static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  // Uniform on a logarithmic scale from low to high.
  int64_t Scale(int64_t low, int64_t high);
  template <typename T, size_t kCount>
  const T& Pick(const T (&values)[kCount]) {
    return values[Next() % kCount];
  }

 private:
  uint64_t state_;
};

inline int64_t Random::Scale(int64_t low, int64_t high) {
  int64_t doublings = 0;
  while (low << (doublings + 1) <= high) ++doublings;
  const int64_t from = low << Between(0, doublings);
  return Between(from, from * 2 - 1 < high ? from * 2 - 1 : high);
}

}  // namespace tributary::simulation
