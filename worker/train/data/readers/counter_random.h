// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// Counter-based random numbers: each is a function of its counters and not of
// earlier draws, so any process can compute any of them. The mixing function is
// SplitMix64's (Steele, Lea, Flood, OOPSLA 2014); arithmetic wraps.
inline uint64_t MixBits(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9;
  x ^= x >> 27;
  x *= 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// 64 random bits for the counters (a, b) of a seed.
inline uint64_t HashBits(uint64_t seed, uint64_t a, uint64_t b) {
  const uint64_t k = MixBits(seed + 0x9E3779B97F4A7C15);
  const uint64_t row = MixBits(k + a * 0x9E3779B97F4A7C15);
  return MixBits(row + b * 0xD1B54A32D192ED03);
}

}  // namespace tributary
