// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/stream/stored_arrays.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<RawData> ReadArrays(const std::string& features,
                                   const std::string& labels,
                                   RowRange range = {},
                                   TargetKind kind = TargetKind::kClass) {
  auto columns = OpenNpy({.samples = InputFiles::OverBytes("x.npy", features),
                          .labels = InputFiles::OverBytes("y.npy", labels),
                          .range = range,
                          .kind = kind},
                         {}, ReadOrder::kSequential);
  if (!columns.ok()) return columns.status();
  return StoredRows::ReadAll(*std::move(columns));
}

const std::string kFeatureArray =
    Npy(NpyDict("<f4", "(3, 2)"), BytesOf<float>({1, 2, 3, 4, 5, 6}));
const std::string kLabelArray =
    Npy(NpyDict("<i8", "(3,)"), BytesOf<int64_t>({2, 0, 1}));

TEST(NpyArraysTest, AnArchiveIsCalledOne) {
  EXPECT_THAT(
      ErrorOf(ReadArrays(std::string("PK\x03\x04\x14\0\0\0", 8), kLabelArray)),
      ::testing::EndsWith("; this is an .npz archive: save each array as "
                          "an .npy file"));
}

TEST(NpyArraysTest, ReadsFeaturesAndLabels) {
  const auto data = ReadArrays(kFeatureArray, kLabelArray);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows, 3);
  EXPECT_THAT(data->feature_shape, ElementsAre(2));
  EXPECT_THAT(data->numbers, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(data->targets.labels, ElementsAre(2, 0, 1));
}

TEST(NpyArraysTest, ReadsEveryTypeAndVersionAndGzip) {
  const std::vector<std::string> files = {
      Npy(NpyDict("<f4", "(3, 1, 2)"), BytesOf<float>({1, 2, 3, 4, 5, 6})),
      Npy(NpyDict("<f8", "(3, 1, 2)"), BytesOf<double>({1, 2, 3, 4, 5, 6}), 2),
      Npy(NpyDict("<i4", "(3, 1, 2)"), BytesOf<int32_t>({1, 2, 3, 4, 5, 6}), 3),
      Npy(NpyDict("<i8", "(3, 1, 2)"), BytesOf<int64_t>({1, 2, 3, 4, 5, 6})),
      Gzip(Npy(NpyDict("<f4", "(3, 1, 2)"),
               BytesOf<float>({1, 2, 3, 4, 5, 6})))};
  for (const std::string& file : files) {
    const auto data = ReadArrays(file, kLabelArray);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_THAT(data->feature_shape, ElementsAre(1, 2));
    EXPECT_THAT(data->numbers, ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

// A file of three rows of one value: 0, 1 and the greatest of the type.
template <typename T>
std::string ThreeOf(const std::string& descr) {
  return Npy(NpyDict(descr, "(3,)"),
             BytesOf<T>({0, 1, std::numeric_limits<T>::max()}));
}

TEST(NpyArraysTest, ReadsIntegersOfEveryWidthAndSign) {
  const std::vector<std::pair<std::string, float>> files = {
      {ThreeOf<int8_t>("|i1"), 127},      {ThreeOf<int16_t>("<i2"), 32767},
      {ThreeOf<uint16_t>("<u2"), 65535},  {ThreeOf<int32_t>("<i4"), 0x1p31},
      {ThreeOf<uint32_t>("<u4"), 0x1p32}, {ThreeOf<int64_t>("<i8"), 0x1p63},
      {ThreeOf<uint64_t>("<u8"), 0x1p64}, {ThreeOf<int8_t>("<i1"), 127}};
  for (const auto& [file, greatest] : files) {
    const auto data = ReadArrays(file, kLabelArray);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_THAT(data->numbers, ElementsAre(0, 1, greatest));
  }
  const auto negative =
      ReadArrays(Npy(NpyDict("<i2", "(3,)"), BytesOf<int16_t>({-32768, -1, 0})),
                 kLabelArray);
  ASSERT_TRUE(negative.ok()) << negative.status();
  EXPECT_THAT(negative->numbers, ElementsAre(-32768, -1, 0));
}

TEST(NpyArraysTest, LabelsMayHaveEveryType) {
  const std::vector<std::string> files = {
      Npy(NpyDict("|i1", "(3,)"), BytesOf<int8_t>({2, 0, 1})),
      Npy(NpyDict("|u1", "(3,)"), BytesOf<uint8_t>({2, 0, 1})),
      Npy(NpyDict("<i2", "(3,)"), BytesOf<int16_t>({2, 0, 1})),
      Npy(NpyDict("<u2", "(3,)"), BytesOf<uint16_t>({2, 0, 1})),
      Npy(NpyDict("<u4", "(3,)"), BytesOf<uint32_t>({2, 0, 1})),
      Npy(NpyDict("<u8", "(3,)"), BytesOf<uint64_t>({2, 0, 1}))};
  for (const std::string& file : files) {
    const auto data = ReadArrays(kFeatureArray, file);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_THAT(data->targets.labels, ElementsAre(2, 0, 1));
  }
  const auto booleans = ReadArrays(
      kFeatureArray, Npy(NpyDict("|b1", "(3,)"), std::string("\1\0\1", 3)), {},
      TargetKind::kBinary);
  ASSERT_TRUE(booleans.ok()) << booleans.status();
  EXPECT_THAT(booleans->targets.values, ElementsAre(1, 0, 1));
  EXPECT_EQ(ErrorOf(ReadArrays(kFeatureArray, ThreeOf<uint64_t>("<u8"))),
            "y.npy: row 2: wanted a class (an integer from 0) as label, got "
            "1.84467e+19");
}

TEST(NpyArraysTest, BooleansAreBytes) {
  const auto data = ReadArrays(
      Npy(NpyDict("|b1", "(3,)"), std::string("\0\1\1", 3)), kLabelArray);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->bytes, ElementsAre(0, 1, 1));
}

TEST(NpyArraysTest, TheRowOfTheGreatestLabelIsKept) {
  const auto data = ReadArrays(kFeatureArray, kLabelArray, {1, 2});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->targets.greatest_class, 1);
  EXPECT_EQ(data->targets.greatest_place, "y.npy: row 2");
}

TEST(NpyArraysTest, AnotherFormatIsNamed) {
  EXPECT_THAT(
      ErrorOf(ReadArrays("version https://git-lfs.github.com/spec/v1\n",
                         kLabelArray)),
      ::testing::EndsWith(" (looks like a Git LFS pointer; fetch the file "
                          "itself with git lfs pull)"));
}

TEST(NpyArraysTest, BytesStayBytesAndAreNotScaled) {
  const auto data = ReadArrays(
      Npy(NpyDict("|u1", "(3,)"), std::string("\x00\x07\xff", 3)), kLabelArray);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->bytes, ElementsAre(0, 7, 255));
  EXPECT_EQ(data->byte_divisor, 1);
  EXPECT_THAT(data->feature_shape, ElementsAre(1));
}

TEST(NpyArraysTest, ReadsARangeOfRows) {
  const auto data = ReadArrays(kFeatureArray, kLabelArray, {1, 1});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->numbers, ElementsAre(3, 4));
  EXPECT_THAT(data->targets.labels, ElementsAre(0));
  EXPECT_EQ(ErrorOf(ReadArrays(kFeatureArray, kLabelArray, {1, 3})),
            "x.npy: wanted 3 rows from row 1 on, but there are 3");
}

TEST(NpyArraysTest, RealTargetsMayBeSeveralARow) {
  const auto data = ReadArrays(
      kFeatureArray,
      Npy(NpyDict("<f8", "(3, 2)"), BytesOf<double>({.1, .2, .3, .4, .5, .6})),
      {1, 0}, TargetKind::kReal);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->targets.width, 2);
  EXPECT_THAT(data->targets.values, ElementsAre(.3f, .4f, .5f, .6f));
}

TEST(NpyArraysTest, WrongLabelsAreToldWithTheirRow) {
  const std::string half =
      Npy(NpyDict("<f4", "(3,)"), BytesOf<float>({1, 2, .5f}));
  EXPECT_EQ(ErrorOf(ReadArrays(kFeatureArray, half)),
            "y.npy: row 2: wanted a class (an integer from 0) as label, got "
            "0.5");
  EXPECT_THAT(ErrorOf(ReadArrays(kFeatureArray, kFeatureArray)),
              HasSubstr("wanted labels of shape [rows], got [3, 2]"));
  const std::string two = Npy(NpyDict("<i4", "(2,)"), BytesOf<int32_t>({1, 2}));
  EXPECT_EQ(ErrorOf(ReadArrays(kFeatureArray, two)),
            "x.npy holds 3 rows, but y.npy holds 2");
}

TEST(NpyArraysTest, BinaryLabelsThatAreOthersHaveARemedy) {
  const auto error_of = [](const std::string& type, const std::string& bytes) {
    return ErrorOf(ReadArrays(kFeatureArray, Npy(NpyDict(type, "(3,)"), bytes),
                              {}, TargetKind::kBinary));
  };
  const std::string remedy =
      "; if there are two classes, write them as 0 and 1, as in ";
  EXPECT_THAT(error_of("<i8", BytesOf<int64_t>({1, -1, 1})),
              HasSubstr("row 1: wanted 0 or 1 as label, got -1" + remedy +
                        "(y > 0).astype(\"u1\")"));
  EXPECT_THAT(error_of("<i4", BytesOf<int32_t>({1, 2, 1})),
              HasSubstr("got 2" + remedy + "(y == 2).astype(\"u1\")"));
  EXPECT_THAT(error_of("<f4", BytesOf<float>({0, 0.25f, 1})),
              HasSubstr("got 0.25" + remedy + "(y > 0.5).astype(\"u1\")"));
}

TEST(NpyArraysTest, FeaturesThatAreNotFiniteAreToldWithTheirPlace) {
  EXPECT_EQ(ErrorOf(ReadArrays(Npy(NpyDict("<f8", "(3, 2)"),
                                   BytesOf<double>({1, 2, 3, 1e300, 5, 6})),
                               kLabelArray)),
            "x.npy: row 1, feature 1: wanted a finite float32, got 1e+300");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(ErrorOf(ReadArrays(Npy(NpyDict("<f4", "(3, 2)"),
                                     BytesOf<float>({nan, 2, 3, 4, 5, 6})),
                                 kLabelArray)),
              HasSubstr("row 0, feature 0"));
}

TEST(NpyArraysTest, WrongMagicVersionAndLengthAreTold) {
  EXPECT_THAT(ErrorOf(ReadArrays("PK\x03\x04_npz_file", kLabelArray)),
              HasSubstr("x.npy: offset 0: wanted \\x93NUMPY"));
  std::string version = kFeatureArray;
  version[6] = 4;
  EXPECT_THAT(ErrorOf(ReadArrays(version, kLabelArray)),
              HasSubstr("version 1, 2 or 3"));
  std::string length = Npy(NpyDict("<f4", "(3, 2)"), "", 2);
  length[11] = 0x7f;
  EXPECT_THAT(ErrorOf(ReadArrays(length, kLabelArray)),
              HasSubstr("wanted an NPY header of at most 1048576 bytes"));
}

TEST(NpyArraysTest, HeadersThatDoNotFitAreTold) {
  const auto error = [](const std::string& dict) {
    return ErrorOf(ReadArrays(Npy(dict, std::string(24, '\0')), kLabelArray));
  };
  for (const std::string dict :
       {"", "{", "[1]", "{'descr': '<f4'}", "{'descr': 7, }",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3, 2), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -2), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 2), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), } x",
        "{'descr': '<f4', 'order': False, 'shape': (3, 2), }"}) {
    EXPECT_THAT(error(dict), HasSubstr(": wanted an NPY header {")) << dict;
  }
}

TEST(NpyArraysTest, TypesOrdersAndShapesItCannotTakeAreTold) {
  const auto error = [](const std::string& dict) {
    return ErrorOf(ReadArrays(Npy(dict, std::string(24, '\0')), kLabelArray));
  };
  EXPECT_THAT(error(NpyDict(">f4", "(3, 2)")),
              HasSubstr("wanted little-endian NPY data of floats (f4, f8), "
                        "integers (i1 to i8, u1 to u8) or booleans (b1), got "
                        ">f4; save it with array.astype(\"<f4\")"));
  for (const char* other : {"<f2", "<U3", "|O", "<M8[ns]", "f", ""}) {
    EXPECT_THAT(error(NpyDict(other, "(3, 2)")),
                HasSubstr("save it with array.astype(\"<f8\")"))
        << other;
  }
  EXPECT_THAT(error("{'descr': [('a', '<f4'), ('b', '<f4')], "
                    "'fortran_order': False, 'shape': (3,), }"),
              HasSubstr("structured_to_unstructured"));
  // Another type would lose the imaginary parts.
  EXPECT_THAT(error(NpyDict("<c8", "(3, 1)")),
              HasSubstr("save it with np.stack([array.real, array.imag], "
                        "axis=-1), as it is complex"));
  EXPECT_THAT(error("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}"),
              HasSubstr("wanted NPY data in C order"));
  EXPECT_THAT(error(NpyDict("<f4", "()")), HasSubstr("[rows, ...], got []"));
  EXPECT_THAT(error(NpyDict("<f4", "(0, 2)")), HasSubstr("got [0, 2]"));
  EXPECT_THAT(error(NpyDict("<f4", "(3, 4611686018427387904)")),
              HasSubstr("got [3, 4611686018427387904]"));
  EXPECT_THAT(error(NpyDict("<f4", "(3, 1000000000)")),
              HasSubstr("announces 12000000000 bytes of NPY data, but the file "
                        "holds at most 24"));
}

TEST(NpyArraysTest, EveryCutOfEitherFileIsTold) {
  for (const bool packed : {false, true}) {
    const std::string x = packed ? Gzip(kFeatureArray) : kFeatureArray;
    const std::string y = packed ? Gzip(kLabelArray) : kLabelArray;
    for (size_t n = 0; n < x.size(); ++n) {
      EXPECT_THAT(ErrorOf(ReadArrays(x.substr(0, n), y)), HasSubstr("x.npy: "))
          << n;
    }
    for (size_t n = 0; n < y.size(); ++n) {
      EXPECT_THAT(ErrorOf(ReadArrays(x, y.substr(0, n))), HasSubstr("y.npy: "))
          << n;
    }
  }
  EXPECT_THAT(ErrorOf(ReadArrays(kFeatureArray + "x", kLabelArray)),
              HasSubstr("x.npy: offset 152: wanted the end"));
}

}  // namespace
}  // namespace tributary
