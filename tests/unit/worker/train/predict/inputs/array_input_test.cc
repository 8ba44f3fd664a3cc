// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/predict/inputs/input_rows.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

// Samples of [1, 2], with bytes of this divisor or, with 0, numbers.
v1::Preprocessing Arrays(float byte_divisor) {
  v1::Preprocessing arrays;
  arrays.set_source(byte_divisor == 0 ? "npy" : "idx");
  arrays.add_feature_shape(1);
  arrays.add_feature_shape(2);
  arrays.set_target_width(1);
  arrays.mutable_numeric()->set_count(2);
  arrays.mutable_numeric()->set_byte_divisor(byte_divisor);
  return arrays;
}

class ArrayInputTest : public testing::TemporaryFolderTest {
 protected:
  absl::StatusOr<RawData> ReadAll(const v1::Preprocessing& preprocessing,
                                  const std::string& bytes,
                                  InputOptions options = {}) {
    options.path = Write("array", bytes);
    auto input = OpenInput(preprocessing, options);
    if (!input.ok()) return input.status();
    return (*input)->Next(1000);
  }
};

TEST_F(ArrayInputTest, ImagesAreReadFromBothFormats) {
  for (const std::string& bytes :
       {Idx({2, 1, 2}, {1, 2, 3, 4}),
        Npy(NpyDict("|u1", "(2, 1, 2)"), std::string("\1\2\3\4"))}) {
    const auto data = ReadAll(Arrays(255), bytes);
    TRIBUTARY_ASSERT_OK(data);
    EXPECT_EQ(data->rows, 2);
    EXPECT_THAT(data->bytes, ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(data->byte_divisor, 255);
  }
}

TEST_F(ArrayInputTest, RowsComeInBatchesAndRanges) {
  const auto preprocessing = Arrays(255);
  auto input = OpenInput(
      preprocessing,
      {.path = Write("array", Gzip(Idx({4, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}))),
       .range = {.first = 1, .count = 0}});
  TRIBUTARY_ASSERT_OK(input);
  EXPECT_THAT((*input)->Next(2)->bytes, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT((*input)->Next(2)->bytes, ElementsAre(7, 8));
  EXPECT_EQ((*input)->Next(2)->rows, 0);
}

TEST_F(ArrayInputTest, RowsOfSeveralFilesFollowOneAnother) {
  const auto preprocessing = Arrays(255);
  InputOptions options{
      .path = Write("first", Idx({2, 1, 2}, {1, 2, 3, 4})),
      .labels = true,
      .labels_path = Write("first_labels", Idx({2}, {0, 1})),
      .more_paths = {Write("second", Idx({2, 1, 2}, {5, 6, 7, 8}))},
      .more_labels = {Write("second_labels", Idx({2}, {2, 3}))},
      .range = {.first = 1, .count = 2}};
  auto input = OpenInput(preprocessing, options);
  TRIBUTARY_ASSERT_OK(input);
  const RawData data = *(*input)->Next(5);
  EXPECT_THAT(data.bytes, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(data.targets.labels, ElementsAre(1, 2));
  EXPECT_EQ((*input)->Next(5)->rows, 0);

  options.range = {.first = 4, .count = 0};
  EXPECT_THAT(OpenInput(preprocessing, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       options.path +
                           ": wanted the rows from row 4 on, but there are 4"));
}

TEST_F(ArrayInputTest, NumbersOfEveryTypeBecomeFloats) {
  const auto read = [&](const std::string& type, const std::string& payload) {
    const auto data =
        ReadAll(Arrays(0), Npy(NpyDict(type, "(1, 1, 2)"), payload));
    EXPECT_TRUE(data.ok()) << data.status();
    return data->numbers;
  };
  EXPECT_THAT(read("<f4", BytesOf<float>({1.5f, -2})), ElementsAre(1.5f, -2));
  EXPECT_THAT(read("<f8", BytesOf<double>({0.1, -2})), ElementsAre(0.1f, -2));
  EXPECT_THAT(read("<i4", BytesOf<int32_t>({7, -2})), ElementsAre(7, -2));
  EXPECT_THAT(read("<i8", BytesOf<int64_t>({7, -2})), ElementsAre(7, -2));
  EXPECT_THAT(read("|u1", BytesOf<uint8_t>({7, 200})), ElementsAre(7, 200));
}

TEST_F(ArrayInputTest, PixelsAreNotTakenForNumbers) {
  const std::string images = Idx({2, 1, 2}, {1, 2, 3, 4});
  EXPECT_THAT(ReadAll(Arrays(0), images),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted an NPY file of numbers on the scale of the "
                       "training data, got the bytes of an IDX file"));
  // Bytes of an NPY file were not scaled in training.
  const auto data = ReadAll(Arrays(1), images);
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_EQ(data->byte_divisor, 1);
  // Labels have no scale.
  InputOptions options{.labels = true};
  options.labels_path = Write("labels", Idx({1}, {9}));
  TRIBUTARY_EXPECT_OK(ReadAll(
      Arrays(0), Npy(NpyDict("<f4", "(1, 1, 2)"), BytesOf<float>({1, 2})),
      options));
}

TEST_F(ArrayInputTest, AnOffsetIsTakenOffBeforeRounding) {
  v1::Preprocessing arrays = Arrays(0);
  arrays.mutable_numeric()->add_offset(1.7e9);
  for (const std::string& array :
       {Npy(NpyDict("<f8", "(1, 1, 2)"), BytesOf<double>({1.7e9 + 3, 1.7e9})),
        Npy(NpyDict("<i8", "(1, 1, 2)"),
            BytesOf<int64_t>({1'700'000'003, 1'700'000'000}))}) {
    EXPECT_THAT(ReadAll(arrays, array)->numbers, ElementsAre(3, 0));
  }
  // The offset is also subtracted from bytes.
  EXPECT_THAT(
      ReadAll(arrays, Npy(NpyDict("|u1", "(1, 1, 2)"), "\1\2"))->numbers,
      ElementsAre(-1.7e9f, -1.7e9f));
}

TEST_F(ArrayInputTest, LabelsAreInAFileOfTheirOwn) {
  const std::string images = Idx({2, 1, 2}, {1, 2, 3, 4});
  InputOptions options{.labels = true};
  EXPECT_THAT(ReadAll(Arrays(255), images, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted a file with its labels"));
  options.labels_path = Write("labels", Idx({2}, {9, 3}));
  const Targets targets = ReadAll(Arrays(255), images, options)->targets;
  EXPECT_THAT(targets.labels, ElementsAre(9, 3));
  EXPECT_EQ(targets.greatest_place, options.labels_path + ": row 0");
  options.labels_path = Write("labels", Idx({3}, {9, 3, 1}));
  EXPECT_THAT(ReadAll(Arrays(255), images, options),
              StatusIs(absl::StatusCode::kInvalidArgument, "holds 3"));
}

TEST_F(ArrayInputTest, WrongInputsAreNamed) {
  EXPECT_THAT(ReadAll(Arrays(255), Idx({2, 2, 2}, std::string(8, 'x'))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "samples are [2, 2], but the training data's are "
                       "[1, 2]"));
  EXPECT_THAT(ReadAll(Arrays(255),
                      Npy(NpyDict("<f4", "(1, 1, 2)"), BytesOf<float>({1, 2}))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted bytes (uint8) as in the training data"));
  EXPECT_THAT(ReadAll(Arrays(255), Npy(NpyDict("|b1", "(1, 1, 2)"), "\1\1")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted bytes (uint8) as in the training data, got "
                       "booleans"));
  EXPECT_THAT(ReadAll(Arrays(0), Npy(NpyDict("<f4", "(2, 1, 2)"),
                                     BytesOf<float>({1, 2, 3, NAN}))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "row 1, feature 1: wanted a finite float32"));
  EXPECT_THAT(ReadAll(Arrays(0), "age,mass\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted an IDX or NPY file"));
  EXPECT_THAT(ReadAll(Arrays(255), Idx({2, 1, 2}, {1, 2, 3})),
              StatusIs(absl::StatusCode::kInvalidArgument, "array"));
}

}  // namespace
}  // namespace tributary
