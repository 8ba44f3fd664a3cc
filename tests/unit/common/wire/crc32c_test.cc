// SPDX-License-Identifier: Apache-2.0
#include "common/wire/crc32c/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace tributary {
namespace {

// RFC 3720, appendix B.4: the bytes of its examples and their CRC-32C.
TEST(Crc32cTest, GivesTheChecksumsOfTheRfc) {
  EXPECT_EQ(Crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(ascending.data(), 32), 0x46dd794eu);
  EXPECT_EQ(Crc32c("123456789", 9),
            0xe3069283u);  // the catalogue's check value
}

TEST(Crc32cTest, AllVersionsAgreeAtEveryLengthAndAlignment) {
  std::mt19937 random(7);
  std::string bytes(50'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  std::vector<size_t> sizes = {4095, 6143, 6144, 6145, 12288, 20001, 49990};
  for (size_t n = 0; n < 700; ++n) sizes.push_back(n);
  const auto versions = internal::SupportedCrc32cVersions();
  for (const auto& version : versions) {
    for (const size_t n : sizes) {
      for (const size_t offset : {0, 1, 3, 8}) {
        const char* const data = bytes.data() + offset;
        const auto start = static_cast<uint32_t>(random());
        ASSERT_EQ(version.extend(start, data, n),
                  versions[0].extend(start, data, n))
            << version.name << ", " << n << " bytes at " << offset;
      }
    }
  }
}

TEST(Crc32cTest, ExtendingEqualsOnePassOverAll) {
  std::string bytes(30'000, 'x');
  bytes[12'345] = 'y';
  const uint32_t whole = Crc32c(bytes.data(), bytes.size());
  uint32_t crc = 0;
  for (size_t at = 0; at < bytes.size(); at += 7'001) {
    crc = ExtendCrc32c(crc, bytes.data() + at,
                       std::min<size_t>(7'001, bytes.size() - at));
  }
  EXPECT_EQ(crc, whole);
}

TEST(Crc32cTest, AChecksumIsMovedOverWhatFollows) {
  std::string text(5000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(7 * i);
  for (size_t cut : {0u, 1u, 8u, 1000u, 4999u, 5000u}) {
    const size_t rest = text.size() - cut;
    EXPECT_EQ(Crc32cShift(rest)(Crc32c(text.data(), cut)) ^
                  Crc32c(text.data() + cut, rest),
              Crc32c(text.data(), text.size()))
        << cut;
  }
}

}  // namespace
}  // namespace tributary
