// SPDX-License-Identifier: Apache-2.0
#include "common/wire/crc32c/crc32c_chunks.h"

#include <cstring>

#include "common/wire/crc32c/crc32c.h"
#include "common/wire/crc32c/crc32c_powers.h"

namespace tributary {
namespace {

using internal::kCrc32cPolynomial;

constexpr internal::Crc32cMove kByChunk =
    internal::Crc32cMoveBy(8 * ChunkFold::kBytes);

// The four bytes whose remainder is `remainder`: divides by x^32.
uint32_t BytesWithRemainder(uint32_t remainder) {
  constexpr uint32_t kHighest = 0x80000000;
  for (int i = 0; i < 32; ++i) {
    remainder = (remainder & kHighest)
                    ? (remainder ^ kCrc32cPolynomial) << 1 | 1
                    : remainder << 1;
  }
  return remainder;
}

}  // namespace

// Starts with zeros and four bytes that have the remainder of everything before
// the chunks.
ChunkFold BeginCrc32cChunks(uint32_t crc) {
  ChunkFold fold;
  fold.factors[0] = kByChunk.first;
  fold.factors[1] = kByChunk.second;
  const uint32_t word = BytesWithRemainder(~crc);
  std::memcpy(fold.bytes + ChunkFold::kBytes - sizeof(word), &word,
              sizeof(word));
  return fold;
}

// ExtendCrc32c inverts the checksum that it extends; the folded bytes start
// from a remainder of 0.
uint32_t FinishCrc32cChunks(const ChunkFold& fold) {
  return ExtendCrc32c(~uint32_t{0}, fold.bytes, ChunkFold::kBytes);
}

}  // namespace tributary
