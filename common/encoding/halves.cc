// SPDX-License-Identifier: Apache-2.0
#include "common/encoding/halves.h"

#include "common/base/clones.h"

namespace tributary {
namespace {

// Without a branch, so that the loop is vectorized.
TRIBUTARY_CLONES bool AnyWithExponent(int64_t n, const UnalignedHalf* x,
                                      uint16_t exponent) {
  uint16_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    found |= static_cast<uint16_t>((x[i] & exponent) == exponent);
  }
  return found != 0;
}

}  // namespace

int64_t FirstWithExponent(int64_t n, const UnalignedHalf* x,
                          uint16_t exponent) {
  if (!AnyWithExponent(n, x, exponent)) return -1;
  int64_t at = 0;
  while ((x[at] & exponent) != exponent) ++at;
  return at;
}

}  // namespace tributary
