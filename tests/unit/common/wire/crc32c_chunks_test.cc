// SPDX-License-Identifier: Apache-2.0
#include "common/wire/crc32c/crc32c_chunks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// a times b without carries: 128 bits, the low half first.
void Multiply(uint64_t a, uint64_t b, uint64_t* low, uint64_t* high) {
  for (int i = 0; i < 64; ++i) {
    if ((b >> i & 1) == 0) continue;
    *low ^= a << i;
    *high ^= i == 0 ? 0 : a >> (64 - i);
  }
}

// Folds as chunk_fold.h says, without a special instruction.
void Fold(ChunkFold* fold, const char* chunk) {
  for (size_t at = 0; at < ChunkFold::kBytes; at += 16) {
    uint64_t old[2], next[2];
    std::memcpy(old, fold->bytes + at, sizeof(old));
    std::memcpy(next, chunk + at, sizeof(next));
    Multiply(old[0], fold->factors[0], &next[0], &next[1]);
    Multiply(old[1], fold->factors[1], &next[0], &next[1]);
    std::memcpy(fold->bytes + at, next, sizeof(next));
  }
}

TEST(Crc32cChunksTest, WithoutAChunkTheChecksumStays) {
  for (const uint32_t crc : {0u, 1u, 0xffffffffu, 0x8a9136aau}) {
    EXPECT_EQ(FinishCrc32cChunks(BeginCrc32cChunks(crc)), crc);
  }
}

TEST(Crc32cChunksTest, ChunksExtendAChecksum) {
  std::mt19937 random(3);
  std::string bytes(5 * ChunkFold::kBytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (const uint32_t crc : {0u, 0xffffffffu, 0x8a9136aau}) {
    ChunkFold fold = BeginCrc32cChunks(crc);
    for (size_t at = 0; at < bytes.size(); at += ChunkFold::kBytes) {
      Fold(&fold, bytes.data() + at);
      EXPECT_EQ(FinishCrc32cChunks(fold),
                ExtendCrc32c(crc, bytes.data(), at + ChunkFold::kBytes));
    }
  }
}

}  // namespace
}  // namespace tributary
