// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/host_device.h"
#include "kernels/scalar_math.h"

namespace tributary {

// Rounds x to the nearest bfloat16, ties to even, and returns it as a float
// whose lower 16 bits are 0. Values beyond the largest bfloat16 become
// infinite; a NaN stays a NaN. The product of two such values is exact in
// float32, since each has 8 significant bits.
TRIBUTARY_HOST_DEVICE inline float RoundToBfloat16(float x) {
  const uint32_t bits = FloatBits(x);
  const uint32_t nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
  // Sets a payload bit in the upper half, so that a NaN with its payload only
  // in the lower half does not become infinite.
  const uint32_t rounded = x == x ? nearest : bits | 0x00400000u;
  return BitsFloat(rounded & 0xffff0000u);
}

}  // namespace tributary
