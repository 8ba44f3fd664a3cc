// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/chunk_fold.h"

namespace tributary {

// The CRC-32C of chunks that are folded where they are written: such as new
// weights, which a loop folds while it waits for the memory that it reads next.
//
//   ChunkFold fold = BeginCrc32cChunks(crc);
//   ...  // fold chunks
//   crc = FinishCrc32cChunks(fold);  // ExtendCrc32c(crc, all chunks)
ChunkFold BeginCrc32cChunks(uint32_t crc);
uint32_t FinishCrc32cChunks(const ChunkFold& fold);

}  // namespace tributary
