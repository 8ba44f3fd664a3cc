// SPDX-License-Identifier: Apache-2.0
#include "common/files/file_checksum.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"
#include "common/files/file_status.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

}  // namespace

absl::StatusOr<std::string> FileChecksum(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC));
  if (!file.ok()) return FileError(path, "open", errno);
  std::vector<char> piece(kPieceBytes);
  uint32_t crc = 0;
  while (true) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path, "read", errno);
    if (got == 0) return absl::StrCat(absl::Hex(crc, absl::kZeroPad8));
    crc = ExtendCrc32c(crc, piece.data(), static_cast<size_t>(got));
  }
}

}  // namespace tributary
