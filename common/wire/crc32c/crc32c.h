// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tributary {

// CRC-32C (Castagnoli, RFC 3720 section 12.1): polynomial 0x1EDC6F41 reflected,
// initial value and final xor all ones. Extends `crc`, 0 at the start, by n
// bytes: Extend(Extend(0, a), b) is the checksum of a followed by b.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t n);

inline uint32_t Crc32c(const void* data, size_t n) {
  return ExtendCrc32c(0, data, n);
}

// Shifts a checksum over `size` following bytes, to combine two checksums:
//   Crc32c(a then b) == Crc32cShift(size of b)(Crc32c(a)) ^ Crc32c(b)
class Crc32cShift {
 public:
  explicit Crc32cShift(uint64_t size);
  uint32_t operator()(uint32_t crc) const;

 private:
  std::array<uint32_t, 32> bits_;  // the image of each bit
};

// Masks a checksum that is stored beside data which contains checksums or is
// checksummed again. Unmasked, the checksum of data followed by its checksum
// would be the same for all data (tensorflow/core/lib/hash/crc32c.h).
inline uint32_t MaskCrc32c(uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

namespace internal {
// One algorithm for ExtendCrc32c; all give the same result.
struct Crc32cVersion {
  const char* name;
  uint32_t (*extend)(uint32_t crc, const void* data, size_t n);
};
// The versions whose instructions this processor has, the fastest last.
std::vector<Crc32cVersion> SupportedCrc32cVersions();
}  // namespace internal

}  // namespace tributary
