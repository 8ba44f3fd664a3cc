// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/bfloat16_math.h"

namespace tributary {

// The upper half of RoundToBfloat16, so that both devices round alike.
__device__ inline uint16_t Bfloat16Bits(float x) {
  return static_cast<uint16_t>(FloatBits(RoundToBfloat16(x)) >> 16);
}

}  // namespace tributary
