// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/input_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// Pseudo-random, so that gzip cannot shrink it much.
std::string Noise(size_t size) {
  std::string bytes(size, '\0');
  uint32_t x = 1;
  for (char& c : bytes)
    c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  return bytes;
}

absl::StatusOr<std::string> ReadAll(InputFile& file, size_t piece) {
  std::string all;
  std::string part(piece, '\0');
  while (true) {
    absl::StatusOr<size_t> n = file.Read(piece, part.data());
    if (!n.ok()) return n.status();
    all.append(part, 0, *n);
    if (*n < piece) return all;
  }
}

TEST(InputFileTest, ReadsPlainAndGzipTheSameInAnyPieces) {
  const std::string bytes = Noise(700000);  // several refills
  for (const std::string& stored : {bytes, Gzip(bytes)}) {
    const std::string path = WriteFile("data", stored);
    for (size_t piece : {size_t{777}, size_t{300000}, size_t{1} << 20}) {
      auto file = InputFile::Open(path);
      ASSERT_TRUE(file.ok()) << file.status();
      const absl::StatusOr<std::string> read = ReadAll(**file, piece);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(*read == bytes);
      EXPECT_EQ((*file)->offset(), 700000);
      EXPECT_TRUE((*file)->ExpectEnd().ok());
    }
  }
}

TEST(InputFileTest, SeveralGzipMembersAreOneFile) {
  const auto file = MemoryFile("two.gz", Gzip("one,") + Gzip("two"));
  EXPECT_EQ(*ReadAll(*file, 100), "one,two");
}

TEST(InputFileTest, EveryCutOfAGzipFileIsToldAsCutOff) {
  const std::string packed = Gzip(Noise(1000));
  for (size_t size = 2; size < packed.size(); ++size) {
    const auto file = MemoryFile("cut.gz", packed.substr(0, size));
    const absl::Status status = ReadAll(*file, 4096).status();
    ASSERT_FALSE(status.ok()) << size;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("cut.gz: the gzip data is cut off"));
  }
}

TEST(InputFileTest, DamagedGzipIsTold) {
  std::string packed = Gzip(Noise(1000));
  packed[500] = static_cast<char>(packed[500] ^ 1);
  const auto file = MemoryFile("bad.gz", packed);
  EXPECT_THAT(std::string(ReadAll(*file, 4096).status().message()),
              HasSubstr("bad.gz: the gzip data is damaged"));
}

TEST(InputFileTest, BytesAfterTheGzipDataAreTold) {
  const auto file = MemoryFile("more.gz", Gzip("data") + "xyz");
  EXPECT_THAT(std::string(ReadAll(*file, 100).status().message()),
              HasSubstr("more.gz: 3 bytes that are not gzip follow"));
}

TEST(InputFileTest, AnEarlyEndSaysWhatWasWantedAndCame) {
  const auto file = MemoryFile("short", "abcdef");
  char buffer[8];
  ASSERT_TRUE(file->ReadExactly(4, buffer, "magic").ok());
  EXPECT_EQ(std::string(file->ReadExactly(8, buffer, "rows").message()),
            "short: offset 4: wanted 8 bytes of rows, but the data ends "
            "after 2");
}

TEST(InputFileTest, SkippingPastTheEndAndDataPastTheEndAreTold) {
  const auto file = MemoryFile("short", "abcdef");
  ASSERT_TRUE(file->Skip(4, "rows").ok());
  EXPECT_THAT(std::string(file->ExpectEnd().message()),
              HasSubstr("short: offset 4: wanted the end"));
  EXPECT_FALSE(file->Skip(4, "rows").ok());
}

TEST(InputFileTest, AHeaderMayNotAnnounceMoreThanTheFileHolds) {
  const auto plain = MemoryFile("plain", std::string(100, 'x'));
  EXPECT_TRUE(plain->ExpectBacked(100, "rows").ok());
  EXPECT_THAT(std::string(plain->ExpectBacked(101, "rows").message()),
              HasSubstr("announces 101 bytes of rows, but the file holds at "
                        "most 100"));
  // The best that deflate can do stays within the bound all the way.
  const std::string zeros(10'000'000, '\0');
  const auto packed = MemoryFile("packed", Gzip(zeros));
  for (size_t left = zeros.size(); left > 0; left -= 100'000) {
    ASSERT_TRUE(packed->ExpectBacked(left, "zeros").ok()) << left;
    ASSERT_TRUE(packed->Skip(100'000, "zeros").ok());
  }
  EXPECT_FALSE(packed->ExpectBacked(1'000'000, "zeros").ok());
}

TEST(InputFileTest, WhatCannotBeOpenedIsNamed) {
  const absl::Status missing =
      InputFile::Open("/nonexistent/train.gz").status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("cannot open /nonexistent/train.gz"));
  EXPECT_THAT(
      std::string(InputFile::Open(::testing::TempDir()).status().message()),
      HasSubstr("wanted a regular file"));
}

}  // namespace
}  // namespace tributary
