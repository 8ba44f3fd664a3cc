#pragma once

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/scalar_math.h"

namespace tributary {

// The bfloat16 nearest to x, of two the even one, as a float: its upper 16
// bits. What is past the largest becomes infinite, a NaN stays one. The product
// of two of them is exact in float32: 8 bits by 8.
TRIBUTARY_HOST_DEVICE inline float RoundToBfloat16(float x) {
  const uint32_t bits = FloatBits(x);
  const uint32_t nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
  // A NaN whose payload is in the lower half alone would become infinite.
  const uint32_t rounded = x == x ? nearest : bits | 0x00400000u;
  return BitsFloat(rounded & 0xffff0000u);
}

}  // namespace tributary
