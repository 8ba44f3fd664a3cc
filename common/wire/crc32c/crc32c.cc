// SPDX-License-Identifier: Apache-2.0
#include "common/wire/crc32c/crc32c.h"

#include <array>
#include <cstring>

#include "common/wire/crc32c/crc32c_folding.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tributary {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // bit-reflected

constexpr std::array<uint32_t, 256> MakeByteTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    }
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeByteTable();

#if defined(__x86_64__)

// The instruction has a latency of 3 cycles and a throughput of one per cycle,
// so three lanes of kLane bytes run at once. A table multiplies by x^(8 kLane)
// in GF(2) to shift a lane's checksum over the next lane.
constexpr size_t kLane = 2048;

using Shift = std::array<std::array<uint32_t, 256>, 4>;

constexpr uint32_t AppendZeros(uint32_t crc, size_t n) {
  for (size_t i = 0; i < n; ++i) crc = (crc >> 8) ^ kTable[crc & 0xff];
  return crc;
}

Shift MakeShift() {
  Shift shift;
  uint32_t bit[32];
  for (int i = 0; i < 32; ++i) bit[i] = AppendZeros(uint32_t{1} << i, kLane);
  for (int byte = 0; byte < 4; ++byte) {
    for (int value = 0; value < 256; ++value) {
      uint32_t crc = 0;
      for (int i = 0; i < 8; ++i) {
        if (value >> i & 1) crc ^= bit[byte * 8 + i];
      }
      shift[byte][value] = crc;
    }
  }
  return shift;
}

uint32_t ApplyShift(const Shift& shift, uint32_t crc) {
  return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^
         shift[2][crc >> 16 & 0xff] ^ shift[3][crc >> 24];
}

uint64_t Load(const unsigned char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

__attribute__((target("sse4.2"))) uint32_t ExtendLanes(uint32_t crc,
                                                       const void* data,
                                                       size_t n) {
  static const Shift shift = MakeShift();
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t a = ~crc;
  while (n >= 3 * kLane) {
    uint64_t b = 0, c = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      a = _mm_crc32_u64(a, Load(p + i));
      b = _mm_crc32_u64(b, Load(p + kLane + i));
      c = _mm_crc32_u64(c, Load(p + 2 * kLane + i));
    }
    a = ApplyShift(shift, static_cast<uint32_t>(a)) ^ b;
    a = ApplyShift(shift, static_cast<uint32_t>(a)) ^ c;
    p += 3 * kLane;
    n -= 3 * kLane;
  }
  for (; n >= 8; n -= 8, p += 8) a = _mm_crc32_u64(a, Load(p));
  uint32_t tail = static_cast<uint32_t>(a);
  for (; n > 0; --n, ++p) tail = _mm_crc32_u8(tail, *p);
  return ~tail;
}

#endif

// A linear map of checksums: the image of each bit.
using BitMap = std::array<uint32_t, 32>;

uint32_t Apply(const BitMap& map, uint32_t crc) {
  uint32_t result = 0;
  for (int i = 0; crc != 0; ++i, crc >>= 1) {
    if (crc & 1) result ^= map[i];
  }
  return result;
}

// The map that applies `a`, then `b`.
BitMap Then(const BitMap& a, const BitMap& b) {
  BitMap result;
  for (int i = 0; i < 32; ++i) result[i] = Apply(b, a[i]);
  return result;
}

}  // namespace

// Composes powers of the map of one zero byte, by repeated squaring.
Crc32cShift::Crc32cShift(uint64_t size) {
  BitMap power;
  for (int i = 0; i < 32; ++i) {
    bits_[i] = uint32_t{1} << i;
    power[i] = (bits_[i] >> 8) ^ kTable[bits_[i] & 0xff];
  }
  for (; size > 0; size >>= 1, power = Then(power, power)) {
    if (size & 1) bits_ = Then(bits_, power);
  }
}

uint32_t Crc32cShift::operator()(uint32_t crc) const {
  return Apply(bits_, crc);
}

namespace internal {

uint32_t ExtendCrc32cPortable(uint32_t crc, const void* data, size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (size_t i = 0; i < n; ++i) {
    crc = (crc >> 8) ^ kTable[(crc ^ p[i]) & 0xff];
  }
  return ~crc;
}

}  // namespace internal

std::vector<internal::Crc32cVersion> internal::SupportedCrc32cVersions() {
  std::vector<Crc32cVersion> versions = {{"portable", ExtendCrc32cPortable}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) {
    versions.push_back({"three lanes", ExtendLanes});
  }
#endif
  if (HaveFolding256()) {
    versions.push_back({"folding of 256 bits", ExtendCrc32cFolding256});
  }
  if (HaveFolding512()) {
    versions.push_back({"folding of 512 bits", ExtendCrc32cFolding512});
  }
  return versions;
}

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t n) {
  static const auto extend = internal::SupportedCrc32cVersions().back().extend;
  return extend(crc, data, n);
}

}  // namespace tributary
