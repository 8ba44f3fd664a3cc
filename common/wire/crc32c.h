#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary {

// CRC-32C (Castagnoli, RFC 3720 section 12.1): polynomial 0x1EDC6F41 reflected,
// initial value and final xor all ones. Extends `crc` (0 for none yet) by n
// bytes, so Extend(Extend(0, a), b) is the checksum of a then b.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t n);

inline uint32_t Crc32c(const void* data, size_t n) {
  return ExtendCrc32c(0, data, n);
}

namespace internal {
// The table version, for machines without the instruction and as its oracle.
uint32_t ExtendCrc32cPortable(uint32_t crc, const void* data, size_t n);
}  // namespace internal

}  // namespace tributary
