// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/files/paged_file.h"

#include <sys/stat.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"
#include "common/wire/crc32c/crc32c.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;

template <typename T>
std::string Bytes(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::string Header(uint64_t message_bytes, uint64_t data_bytes,
                   uint32_t kind = 2, uint32_t version = 1) {
  return "TRIBCKPT" + Bytes(kind) + Bytes(version) + Bytes(message_bytes) +
         Bytes(data_bytes);
}

// Bytes that do not repeat within a page.
std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(i * 2654435761u >> 24);
  }
  return bytes;
}

class PagedFileTest : public testing::TemporaryFolderTest {
 protected:
  // Writes a shard file and returns its checksum.
  uint32_t WriteFile(const std::string& name, absl::string_view message,
                     absl::string_view data) const {
    auto writer =
        PagedFileWriter::Create(Path(name), PagedFileKind::kShard, message,
                                static_cast<int64_t>(data.size()));
    EXPECT_TRUE(writer.ok()) << writer.status();
    TRIBUTARY_EXPECT_OK((*writer)->Append(data.data(), data.size()));
    TRIBUTARY_EXPECT_OK((*writer)->Commit());
    const std::string file = Read(name);
    EXPECT_EQ((*writer)->bytes(), static_cast<int64_t>(file.size()));
    EXPECT_EQ((*writer)->crc32c(), Crc32c(file.data(), file.size()));
    return (*writer)->crc32c();
  }
  // The error of opening these bytes.
  static absl::Status ErrorOf(absl::string_view bytes) {
    return PagedFile::Parse("x", bytes, PagedFileKind::kShard).status();
  }
};

// The checksums were worked out by a bitwise CRC-32C in Python, over eight zero
// bytes (the page's number) and the content, then masked.
TEST_F(PagedFileTest, WritesTheFormatByteByByte) {
  EXPECT_EQ(WriteFile("x", "hi", "abc"), 0x92a1643cu);
  EXPECT_EQ(Read("x"), Header(2, 3) + "hiabc" + "\x01\x33\x1e\x29");
}

TEST_F(PagedFileTest, GivesBackMessageAndDataAcrossPages) {
  const std::string message = Pattern(70'000);
  const std::string data = Pattern(200'000);
  WriteFile("x", message, data);
  const auto file = PagedFile::Open(Path("x"), PagedFileKind::kShard);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->message(), message);
  EXPECT_EQ(file->data_bytes(), 200'000);
  EXPECT_EQ(file->bytes(), 32 + 270'000 + 5 * 4);
  PageBuffer buffer;
  for (const size_t offset : {0, 1, 61'031, 61'032, 126'563, 199'999}) {
    for (const size_t size : {0, 1, 4, 65'532, 130'000}) {
      if (offset + size > data.size()) continue;
      std::string read(size, '\0');
      TRIBUTARY_EXPECT_OK(file->ReadData(static_cast<int64_t>(offset),
                                         read.data(), size, &buffer));
      EXPECT_EQ(read, data.substr(offset, size)) << offset << " " << size;
    }
  }
  std::string read(2, '\0');
  EXPECT_THAT(file->ReadData(199'999, read.data(), 2, &buffer),
              StatusIs(absl::StatusCode::kOutOfRange, Path("x")));
}

TEST_F(PagedFileTest, AFullLastPageIsFollowedByNone) {
  const std::string data = Pattern(2 * kPageContentBytes - 32);
  WriteFile("x", "", data);
  EXPECT_EQ(Read("x").size(), static_cast<size_t>(2 * kPageBytes));
  EXPECT_TRUE(PagedFile::Open(Path("x"), PagedFileKind::kShard).ok());
}

TEST_F(PagedFileTest, PagesInMemoryAreThoseOfAFile) {
  const std::string data = Pattern(150'000);
  WriteFile("x", "hi", data);
  EXPECT_EQ(Read("x"), ToPages(Header(2, 150'000) + "hi" + data));
  const std::string file = Read("x");
  TRIBUTARY_EXPECT_OK(ErrorOf(file));
}

// Without masking, all files of whole pages would have the same checksum.
TEST_F(PagedFileTest, TheFilesChecksumDependsOnItsContent) {
  EXPECT_NE(WriteFile("x", "hi", "abc"), WriteFile("y", "hi", "abd"));
}

TEST_F(PagedFileTest, TheWriterCountsTheDataAndLeavesNothingHalf) {
  {
    auto writer = PagedFileWriter::Create(Path("x"), PagedFileKind::kShard,
                                          "hi", /*data_bytes=*/3);
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ((*writer)->Append("abcd", 4),
              absl::FailedPreconditionError(Path("x") +
                                            ": wants 3 more bytes, got 4"));
    EXPECT_EQ((*writer)->Commit(), absl::FailedPreconditionError(
                                       Path("x") + ": 3 bytes are missing"));
  }
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(PagedFileTest, WhatIsNoFileOfThisKindIsRefusedWithThePlace) {
  const auto error = [](const std::string& content) {
    return std::string(ErrorOf(ToPages(content)).message());
  };
  EXPECT_EQ(ErrorOf("").message(),
            "x: byte 0: the file is cut short: it ends here");
  EXPECT_EQ(ErrorOf("abc").message(),
            "x: byte 3: the file is cut short: it ends here");
  EXPECT_THAT(ErrorOf("something"),
              StatusIs(absl::StatusCode::kDataLoss,
                       "x: byte 0: the page from here to byte 8 is damaged"));
  EXPECT_EQ(error("short"),
            "x: byte 0: wants a checkpoint file, got 9 bytes of something "
            "else");
  EXPECT_EQ(error("tribckpt" + Header(0, 0).substr(8)),
            "x: byte 0: wants a checkpoint file, got something else");
  EXPECT_EQ(error(Header(0, 0, /*kind=*/1)), "x: byte 8: wants kind 2, got 1");
  EXPECT_EQ(ErrorOf(ToPages(Header(0, 0, 2, /*version=*/9))),
            absl::FailedPreconditionError(
                "x: byte 12: wants format version 1, got 9"));
}

TEST_F(PagedFileTest, WrongLengthsAreRefusedBeforeAnythingIsAllocated) {
  const auto error = [](uint64_t message_bytes, uint64_t data_bytes) {
    return std::string(
        ErrorOf(ToPages(Header(message_bytes, data_bytes) + "12345"))
            .message());
  };
  EXPECT_EQ(error(3, 2), "");
  EXPECT_EQ(error(3, 1),
            "x: byte 24: announces 1 bytes of data, the file holds 2");
  for (const auto& [message, data] : std::vector<std::pair<uint64_t, uint64_t>>{
           {6, 0}, {0, 6}, {3, 3}, {5, UINT64_MAX}, {64 << 20, UINT64_MAX}}) {
    EXPECT_EQ(
        error(message, data),
        absl::StrCat("x: byte 41: the file is cut short: it ends here, "
                     "its header announces ",
                     message, " bytes of message and ", data, " of data"));
  }
  EXPECT_EQ(error((64 << 20) + 1, 0),
            "x: byte 16: wants a message of at most 67108864 bytes, got "
            "67108865");
  EXPECT_EQ(error(UINT64_MAX, 0),
            "x: byte 16: wants a message of at most 67108864 bytes, got "
            "18446744073709551615");
}

TEST_F(PagedFileTest, PagesThatChangedPlacesAreDamaged) {
  WriteFile("x", "", Pattern(250'000));
  const std::string file = Read("x");
  const size_t page = kPageBytes;
  Write("y", file.substr(0, page) + file.substr(2 * page, page) +
                 file.substr(page, page) + file.substr(3 * page));
  EXPECT_THAT(VerifyPages(Path("y"), file.size(), {}),
              StatusIs(absl::StatusCode::kDataLoss,
                       Path("y") + ": byte 65536: the page from here to byte "
                                   "131071 is damaged"));
  EXPECT_THAT(VerifyPages(Path("y"), file.size(), {}),
              StatusIs(absl::StatusCode::kDataLoss, "; 1 more page of 4"));
}

// SHA-256 of the pages' SHA-256, whichever way the pages are read.
TEST_F(PagedFileTest, TheSha256IsThatOfThePagesDigests) {
  const std::string data = Pattern(250'000);
  auto writer = PagedFileWriter::Create(Path("x"), PagedFileKind::kShard, "hi",
                                        static_cast<int64_t>(data.size()),
                                        /*digests=*/true);
  ASSERT_TRUE(writer.ok()) << writer.status();
  TRIBUTARY_EXPECT_OK((*writer)->Append(data.data(), data.size()));
  TRIBUTARY_EXPECT_OK((*writer)->Commit());
  const std::string file = Read("x");
  Sha256 whole;
  for (size_t at = 0; at < file.size(); at += kPageBytes) {
    const std::string page = file.substr(at, kPageBytes);
    Sha256 of_page;
    of_page.Update(page.data(), page.size());
    const std::string digest = of_page.Digest();
    ASSERT_EQ(digest.size(), 32u);
    whole.Update(digest.data(), digest.size());
  }
  const FileSums sums = {.crc32c = (*writer)->crc32c(),
                         .sha256 = whole.Digest()};
  EXPECT_EQ((*writer)->sha256(), sums.sha256);
  TRIBUTARY_EXPECT_OK(VerifyPages(Path("x"), file.size(), sums));
  const auto read =
      PagedFile::Open(Path("x"), PagedFileKind::kShard, Comparing::kDigest);
  ASSERT_TRUE(read.ok()) << read.status();
  PageBuffer buffer;
  char byte = 0;
  for (const int64_t at : {200'000, 70'000, 200'001}) {
    TRIBUTARY_EXPECT_OK(read->ReadData(at, &byte, 1, &buffer));
  }
  TRIBUTARY_EXPECT_OK(read->Compare(sums));
  FileSums other = sums;
  other.sha256[7] ^= 1;
  for (const absl::Status& status :
       {VerifyPages(Path("x"), file.size(), other), read->Compare(other)}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                 "somebody has changed it"));
  }
}

TEST_F(PagedFileTest, VerifyingComparesWithTheManifest) {
  const uint32_t crc = WriteFile("x", "hi", "abc");
  TRIBUTARY_EXPECT_OK(VerifyPages(Path("x"), 41, {.crc32c = crc}));
  EXPECT_THAT(VerifyPages(Path("x"), 41, {.crc32c = crc + 1}),
              StatusIs(absl::StatusCode::kDataLoss, "it is another file"));
  EXPECT_EQ(VerifyPages(Path("x"), 50, {.crc32c = crc}).message(),
            Path("x") +
                ": byte 41: the file is cut short: it ends here, the "
                "manifest says it has 50 bytes");
  EXPECT_EQ(VerifyPages(Path("x"), 40, {.crc32c = crc}).message(),
            Path("x") +
                ": byte 40: the file goes on here, the manifest says "
                "it has 40 bytes");
}

TEST_F(PagedFileTest, WhatIsNoRegularFileIsNotWaitedFor) {
  const auto open = [this](const std::string& name) {
    return PagedFile::Open(Path(name), PagedFileKind::kShard).status();
  };
  EXPECT_EQ(open("x"), absl::NotFoundError(
                           Path("x") + ": open: No such file or directory"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(open("pipe").message(),
            Path("pipe") + ": byte 0: wants a regular file");
  EXPECT_EQ(open(".").message(), Path(".") + ": byte 0: wants a regular file");
}

TEST_F(PagedFileTest, AFileThatShrinksWhileItIsReadIsDataLoss) {
  WriteFile("x", "", Pattern(150'000));
  const auto file = PagedFile::Open(Path("x"), PagedFileKind::kShard);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(Path("x"), 70'000);
  PageBuffer buffer;
  std::string read(10, '\0');
  EXPECT_EQ(file->ReadData(100'000, read.data(), 10, &buffer),
            absl::DataLossError(
                Path("x") +
                ": byte 70000: the file ends here, it was longer when opened"));
}

}  // namespace
}  // namespace tributary
