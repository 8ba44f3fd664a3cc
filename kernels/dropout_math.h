// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace tributary {

struct Philox4 {
  uint32_t word[4];
};

// Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy
// as 1, 2, 3; SC 2011): 128 random bits as a pure function of 128 bits of
// counter and 64 bits of key.
TRIBUTARY_HOST_DEVICE inline Philox4 Philox(uint32_t c0, uint32_t c1,
                                            uint32_t c2, uint32_t c3,
                                            uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// The values that all elements of one Dropout call share, prepared on the host.
// An element is kept when its 32-bit draw is below `threshold`.
struct DropoutStep {
  uint32_t key0 = 0, key1 = 0;  // the seed
  uint32_t step = 0;
  uint32_t layer = 0;
  uint64_t threshold = 0;  // (1 - p) 2^32
  float scale = 1;         // 1 / (1 - p)
};

// The draws for columns [4 group, 4 group + 4) of a row of the global batch.
// Step, row and group are taken modulo 2^32.
TRIBUTARY_HOST_DEVICE inline Philox4 DropoutDraws(const DropoutStep& p,
                                                  int64_t row, int64_t group) {
  return Philox(static_cast<uint32_t>(group), static_cast<uint32_t>(row),
                p.step, p.layer, p.key0, p.key1);
}

TRIBUTARY_HOST_DEVICE inline float DropoutElement(const DropoutStep& p,
                                                  uint32_t draw, float x) {
  const float scaled = x * p.scale;
  return draw < p.threshold ? scaled : 0.0f;
}

}  // namespace tributary
