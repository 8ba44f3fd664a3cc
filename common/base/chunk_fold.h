// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary {

// A polynomial over GF(2) that stands for all bytes of a stream so far, so that
// a loop which writes the stream can continue its checksum
// (common/wire/crc32c/crc32c_chunks.h) without knowing which checksum that is.
// For a chunk of kBytes, the two halves of each 16 bytes of the polynomial are
// multiplied by their factors (without carries); the two products and the
// chunk's 16 bytes are added.
struct ChunkFold {
  static constexpr size_t kBytes = 256;

  alignas(64) unsigned char bytes[kBytes] = {};
  uint64_t factors[2] = {};  // of the first and the second half of 16 bytes
};

}  // namespace tributary
