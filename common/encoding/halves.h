// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// A number of 16 bits at any byte address, as received buffers hold them.
typedef uint16_t UnalignedHalf __attribute__((aligned(1), may_alias));

// Returns the first of n numbers whose exponent bits are all set, so that it is
// a NaN or infinite; -1: there is no such number.
int64_t FirstWithExponent(int64_t n, const UnalignedHalf* x, uint16_t exponent);

}  // namespace tributary
