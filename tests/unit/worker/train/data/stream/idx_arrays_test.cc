// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/stream/stored_arrays.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<RawData> ReadImages(const std::string& images,
                                   const std::string& labels,
                                   RowRange range = {},
                                   TargetKind kind = TargetKind::kClass) {
  auto columns = OpenIdx({.samples = InputFiles::OverBytes("images", images),
                          .labels = InputFiles::OverBytes("labels", labels),
                          .range = range,
                          .kind = kind},
                         ReadOrder::kSequential);
  if (!columns.ok()) return columns.status();
  return StoredRows::ReadAll(*std::move(columns));
}

// Three images of 2 x 2.
const std::string kImages =
    Idx({3, 2, 2},
        std::string("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\xff", 12));
const std::string kLabels = Idx({3}, std::string("\x05\x00\x09", 3));

TEST(IdxArraysTest, ReadsImagesAndLabels) {
  for (const bool packed : {false, true}) {
    const absl::StatusOr<RawData> data =
        packed ? ReadImages(Gzip(kImages), Gzip(kLabels))
               : ReadImages(kImages, kLabels);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->rows, 3);
    EXPECT_THAT(data->feature_shape, ElementsAre(2, 2));
    EXPECT_EQ(data->byte_divisor, 255);
    EXPECT_THAT(data->bytes,
                ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255));
    EXPECT_THAT(data->targets.labels, ElementsAre(5, 0, 9));
  }
}

TEST(IdxArraysTest, ReadsARangeOfRows) {
  const absl::StatusOr<RawData> data = ReadImages(kImages, kLabels, {1, 1});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->bytes, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(data->targets.labels, ElementsAre(0));
  const absl::StatusOr<RawData> rest = ReadImages(kImages, kLabels, {1, 0});
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->rows, 2);
}

TEST(IdxArraysTest, ARangeOutsideTheFileIsTold) {
  EXPECT_EQ(ErrorOf(ReadImages(kImages, kLabels, {2, 2})),
            "images: wanted 2 rows from row 2 on, but there are 3");
  EXPECT_EQ(ErrorOf(ReadImages(kImages, kLabels, {3, 0})),
            "images: wanted the rows from row 3 on, but there are 3");
  EXPECT_THAT(ErrorOf(ReadImages(kImages, kLabels, {-1, 0})),
              HasSubstr("got -1"));
}

TEST(IdxArraysTest, BinaryAndRealTargetsAreNumbers) {
  EXPECT_THAT(ErrorOf(ReadImages(kImages, kLabels, {}, TargetKind::kBinary)),
              HasSubstr("labels: row 0: wanted 0 or 1 as label, got 5"));
  EXPECT_THAT(
      ReadImages(kImages, kLabels, {}, TargetKind::kReal)->targets.values,
      ElementsAre(5.0f, 0.0f, 9.0f));
}

TEST(IdxArraysTest, WrongMagicIsTold) {
  EXPECT_THAT(ErrorOf(ReadImages("PK\x03\x04", kLabels)),
              HasSubstr("images: offset 0: wanted the IDX magic of unsigned "
                        "bytes in at least 2 dimensions (00 00 08 02), got 50 "
                        "4b 03 04"));
  EXPECT_THAT(ErrorOf(ReadImages(kLabels, kImages)),
              HasSubstr("got 00 00 08 01"));  // exchanged
  EXPECT_THAT(
      ErrorOf(ReadImages(kImages, kImages)),
      HasSubstr("labels: offset 0: wanted the IDX magic of unsigned "
                "bytes in 1 dimensions (00 00 08 01), got 00 00 08 03"));
  EXPECT_THAT(ErrorOf(ReadImages(std::string("\0\0\x0D\x02", 4), kLabels)),
              HasSubstr("got 00 00 0d 02; save other numbers as NPY files"));
  EXPECT_THAT(ErrorOf(ReadImages("", kLabels)),
              HasSubstr("images: offset 0: wanted 4 bytes of IDX magic"));
}

TEST(IdxArraysTest, CountsThatDisagreeAreTold) {
  EXPECT_EQ(ErrorOf(ReadImages(kImages, Idx({2}, "ab"))),
            "images holds 3 rows, but labels holds 2");
}

TEST(IdxArraysTest, EveryCutOfEitherFileIsTold) {
  for (const bool packed : {false, true}) {
    const std::string images = packed ? Gzip(kImages) : kImages;
    const std::string labels = packed ? Gzip(kLabels) : kLabels;
    for (size_t n = 0; n < images.size(); ++n) {
      EXPECT_THAT(ErrorOf(ReadImages(images.substr(0, n), labels)),
                  HasSubstr("images: "))
          << n;
    }
    for (size_t n = 0; n < labels.size(); ++n) {
      EXPECT_THAT(ErrorOf(ReadImages(images, labels.substr(0, n))),
                  HasSubstr("labels: "))
          << n;
    }
  }
}

TEST(IdxArraysTest, BytesAfterTheLastImageAreTold) {
  EXPECT_THAT(ErrorOf(ReadImages(kImages + "x", kLabels)),
              HasSubstr("images: offset 28: wanted the end"));
  EXPECT_THAT(ErrorOf(ReadImages(kImages, kLabels + "x")),
              HasSubstr("labels: offset 11: wanted the end"));
}

TEST(IdxArraysTest, AbsurdExtentsAreRefusedBeforeMemoryIsTaken) {
  EXPECT_THAT(ErrorOf(ReadImages(Idx({0xffffffff, 0xffffffff, 0xffffffff}, ""),
                                 kLabels)),
              HasSubstr("impossible IDX extents"));
  EXPECT_THAT(ErrorOf(ReadImages(Idx({0, 2, 2}, ""), Idx({0}, ""))),
              HasSubstr("impossible IDX extents [0]"));
  EXPECT_THAT(ErrorOf(ReadImages(Idx({3, 1 << 20, 1 << 20}, "abc"), kLabels)),
              HasSubstr("announces 3298534883328 bytes of rows"));
  EXPECT_THAT(
      ErrorOf(ReadImages(Gzip(Idx({3, 1 << 20, 1 << 20}, "abc")), kLabels)),
      HasSubstr("rows, but the file holds at most"));
}

}  // namespace
}  // namespace tributary
