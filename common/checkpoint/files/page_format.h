// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {

// The byte format of paged files, shared by writer and reader.

static_assert(std::endian::native == std::endian::little,
              "numbers and tensors are written as they stand in memory");

inline constexpr uint64_t kContentMagic = 0x54504b4342495254;  // "TRIBCKPT"
inline constexpr uint32_t kContentVersion = 1;

struct ContentHeader {
  uint64_t magic = kContentMagic;
  uint32_t kind = 0;
  uint32_t version = kContentVersion;
  uint64_t message_bytes = 0;
  uint64_t data_bytes = 0;
};
static_assert(sizeof(ContentHeader) == 32);

// The page number is part of the checksum, so swapped pages are detected. The
// checksum is masked because the whole file has a checksum as well.
inline uint32_t PageChecksum(int64_t page, absl::string_view content) {
  return MaskCrc32c(ExtendCrc32c(Crc32c(&page, sizeof(page)), content.data(),
                                 content.size()));
}

}  // namespace tributary
