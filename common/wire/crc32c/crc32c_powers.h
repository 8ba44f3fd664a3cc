// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary::internal {

inline constexpr uint32_t kCrc32cPolynomial = 0x82F63B78;  // bit-reflected

// x^n modulo the polynomial, bit-reflected, times x: the product of two
// reflected numbers is shifted by one bit.
constexpr uint64_t Crc32cPower(int n) {
  uint32_t power = 0x80000000;
  for (int i = 0; i < n; ++i) {
    power = (power >> 1) ^ ((power & 1) ? kCrc32cPolynomial : 0);
  }
  return uint64_t{power} << 1;
}

// The two factors that move 128 bits forward by `bits`; `first` multiplies
// their first half.
struct Crc32cMove {
  uint64_t first;
  uint64_t second;
};
constexpr Crc32cMove Crc32cMoveBy(int bits) {
  return {Crc32cPower(bits + 32), Crc32cPower(bits - 32)};
}

}  // namespace tributary::internal
