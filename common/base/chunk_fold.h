// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary {

// A polynomial over GF(2) that stands for all bytes of a stream so far, so that
// a loop which writes the stream can continue its checksum
// (common/wire/crc32c/crc32c_chunks.h) without knowing which one it is. For a
// chunk of kBytes, both halves of each 16 bytes are multiplied by their factor
// (without carries), the two products are added, and so are the chunk's 16
// bytes.
struct ChunkFold {
  static constexpr size_t kBytes = 256;

  alignas(64) unsigned char bytes[kBytes] = {};
  uint64_t factors[2] = {};  // of the first and the second half of 16 bytes
};

}  // namespace tributary
