// SPDX-License-Identifier: Apache-2.0
#include "common/files/file_checksum.h"

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using FileChecksumTest = testing::TemporaryFolderTest;

// The check value of CRC-32C is e3069283 (RFC 3720, B.4, and the catalogue of
// parametrised CRC algorithms).
TEST_F(FileChecksumTest, IsTheCrc32cOfTheBytes) {
  EXPECT_EQ(*FileChecksum(Write("file", "123456789")), "e3069283");
  EXPECT_EQ(*FileChecksum(Write("empty", "")), "00000000");
}

TEST_F(FileChecksumTest, AByteInALaterPieceCounts) {
  std::string bytes(3 << 20, 'a');
  const std::string before = *FileChecksum(Write("file", bytes));
  bytes.back() = 'b';
  EXPECT_NE(*FileChecksum(Write("file", bytes)), before);
}

TEST_F(FileChecksumTest, AMissingFileIsNotFound) {
  EXPECT_THAT(
      FileChecksum(Path("none")),
      testing::StatusIs(absl::StatusCode::kNotFound, Path("none") + ": open"));
}

}  // namespace
}  // namespace tributary
