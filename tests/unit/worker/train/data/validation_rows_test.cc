// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/validation_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::StatusIs;

// Row i has the numbers 10 i and 10 i + 1, the code i % 3 and the class i % 2.
RawData Table(int64_t rows) {
  RawData raw;
  raw.name = "table";
  raw.rows = rows;
  raw.feature_shape = {5};
  raw.numeric_width = 2;
  raw.code_widths = {3};
  for (int64_t i = 0; i < rows; ++i) {
    raw.numbers.push_back(static_cast<float>(10 * i));
    raw.numbers.push_back(static_cast<float>(10 * i + 1));
    raw.codes.push_back(static_cast<int32_t>(i % 3));
    raw.targets.labels.push_back(i % 2);
  }
  return raw;
}

// The tokens 0, 1, 2, ... in samples of `length`.
RawData Text(int64_t rows, int64_t length, int64_t stride) {
  RawData raw;
  raw.name = "text";
  raw.rows = rows;
  raw.feature_shape = {length};
  raw.token_stride = stride;
  raw.num_tokens = 1000;
  raw.targets.width = length;
  for (int32_t t = 0; t <= (rows - 1) * stride + length; ++t) {
    raw.tokens.push_back(t);
  }
  return raw;
}

// The rows of Table that a set has.
std::vector<int64_t> RowsOf(const RawData& raw) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < raw.rows; ++i) {
    const int64_t row = static_cast<int64_t>(raw.numbers[2 * i]) / 10;
    EXPECT_EQ(raw.numbers[2 * i + 1], 10 * row + 1);
    EXPECT_EQ(raw.codes[i], row % 3);
    EXPECT_EQ(raw.targets.labels[i], row % 2);
    rows.push_back(row);
  }
  return rows;
}

TEST(ValidationRowsTest, ARandomPartInTheOrderOfTheFileLeavesTheTrainingSet) {
  RawData train = Table(10);
  const auto validation = TakeValidationRows(0.3, 7, &train);
  TRIBUTARY_ASSERT_OK(validation);
  // The choice of seed 7 among 10 rows; runs of other versions have it too.
  EXPECT_THAT(RowsOf(*validation), ElementsAre(1, 6, 8));
  EXPECT_THAT(RowsOf(train), ElementsAre(0, 2, 3, 4, 5, 7, 9));
  EXPECT_EQ(validation->name, "table (validation)");
  EXPECT_EQ(validation->feature_shape, train.feature_shape);
  EXPECT_EQ(validation->code_widths, train.code_widths);
}

TEST(ValidationRowsTest, AnotherSeedTakesOtherRows) {
  RawData one = Table(100), same = Table(100), other = Table(100);
  const std::vector<int64_t> rows = RowsOf(*TakeValidationRows(0.2, 1, &one));
  EXPECT_EQ(RowsOf(*TakeValidationRows(0.2, 1, &same)), rows);
  EXPECT_NE(RowsOf(*TakeValidationRows(0.2, 2, &other)), rows);
  EXPECT_EQ(rows.size(), 20u);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
}

TEST(ValidationRowsTest, WithoutASeedTheLastRowsAreTaken) {
  RawData train = Table(5);
  const auto validation = TakeValidationRows(0.4, std::nullopt, &train);
  TRIBUTARY_ASSERT_OK(validation);
  EXPECT_THAT(RowsOf(*validation), ElementsAre(3, 4));
  EXPECT_THAT(RowsOf(train), ElementsAre(0, 1, 2));
}

TEST(ValidationRowsTest, ASmallFractionTakesOneRowAndALargeOneLeavesOne) {
  RawData train = Table(5);
  EXPECT_EQ(TakeValidationRows(0.01, 1, &train)->rows, 1);
  EXPECT_EQ(train.rows, 4);
  EXPECT_THAT(TakeValidationRows(0.9, 1, &train),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "table: the validation set has 4 of 4 rows, which "
                       "leaves none to train on"));
  RawData one = Table(1);
  EXPECT_THAT(TakeValidationRows(0.5, 1, &one),
              StatusIs(absl::StatusCode::kInvalidArgument, "1 of 1 rows"));
}

TEST(ValidationRowsTest, BytesAndNumbersToPredictAreTakenToo) {
  RawData train;
  train.rows = 4;
  train.feature_shape = {2, 1};
  train.numeric_width = 2;
  train.bytes = {0, 1, 2, 3, 4, 5, 6, 7};
  train.byte_divisor = 255;
  train.targets.kind = TargetKind::kReal;
  train.targets.values = {0, 1, 2, 3};
  const auto validation = TakeValidationRows(0.25, std::nullopt, &train);
  TRIBUTARY_ASSERT_OK(validation);
  EXPECT_THAT(validation->bytes, ElementsAre(6, 7));
  EXPECT_EQ(validation->byte_divisor, 255);
  EXPECT_THAT(validation->targets.values, ElementsAre(3));
  EXPECT_THAT(validation->targets.labels, IsEmpty());
  EXPECT_THAT(train.bytes, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ValidationRowsTest, OfATextTheLastSamplesAreTaken) {
  RawData train = Text(4, /*length=*/3, /*stride=*/3);
  const auto validation = TakeValidationRows(0.25, 1, &train);
  TRIBUTARY_ASSERT_OK(validation);
  EXPECT_EQ(validation->rows, 1);
  EXPECT_THAT(validation->tokens, ElementsAre(9, 10, 11, 12));
  EXPECT_EQ(train.rows, 3);
  EXPECT_THAT(train.tokens, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// Samples begin at 0, 2, ..., 10. The last two begin at 8; the one at 4 ends
// with token 7, and the one at 6 would reach into them.
TEST(ValidationRowsTest, SamplesThatReachIntoTheValidationSetAreDropped) {
  RawData train = Text(6, /*length=*/4, /*stride=*/2);
  const auto validation = TakeValidationRows(0.34, 1, &train);
  TRIBUTARY_ASSERT_OK(validation);
  EXPECT_EQ(validation->rows, 2);
  EXPECT_EQ(validation->tokens.front(), 8);
  EXPECT_EQ(train.rows, 3);
  EXPECT_EQ(train.tokens.back(), 8);  // the last target
  RawData overlapping = Text(6, /*length=*/40, /*stride=*/2);
  EXPECT_THAT(TakeValidationRows(0.34, 1, &overlapping),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the last 2 of 6 samples, which leaves none"));
}

}  // namespace
}  // namespace tributary
