// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_missing.h"

#include <algorithm>
#include <cmath>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/status/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/readers/counter_random.h"
#include "worker/train/data/readers/csv/column_median.h"
#include "worker/train/data/readers/csv/csv_reader.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;
using Kind = CsvMissing::Kind;

// Columns x and z are numeric, job is categorical and y the label.
constexpr char kHoles[] =
    "x,job,z,y\n"
    "1,smith,10,0\n"
    ",?, NA ,1\n"
    "3,baker,20,1\n"
    "8,smith,?,0\n"
    "4,NA,1e3,0\n";

class CsvMissingTest : public ::testing::Test {
 protected:
  absl::StatusOr<RawData> Train(const std::string& text,
                                const CsvMissing& missing,
                                TargetKind kind = TargetKind::kClass) {
    const InputFiles file = InputFiles::OverBytes("train.csv", text);
    return ReadTrainingCsv(file, Options(missing), kind, &words_);
  }
  absl::StatusOr<std::vector<double>> Fill(const CsvMissing& missing) {
    const absl::StatusOr<RawData> data = Train(kHoles, missing);
    EXPECT_TRUE(data.ok()) << data.status();
    return MeasureFill(missing, *data, PartsOf(*data), words_.header,
                       words_.roles);
  }
  static CsvOptions Options(const CsvMissing& missing) {
    CsvOptions options;
    options.columns.label = "y";
    options.columns.numeric = {"x", "z"};
    options.columns.categorical = {"job"};
    options.missing = missing;
    return options;
  }

  CsvWords words_;
};

TEST_F(CsvMissingTest, MeanAndMedianAreThoseOfTheValuesThatAreThere) {
  // x: 1 3 8 4; z: 10 20 1000.
  EXPECT_THAT(*Fill({.kind = Kind::kMean, .texts = {"NA"}}),
              ElementsAre(4, 1030.0 / 3));
  EXPECT_THAT(*Fill({.kind = Kind::kMedian, .texts = {"NA"}}),
              ElementsAre(3.5, 20));
  EXPECT_THAT(*Fill({.kind = Kind::kConstant, .constant = -1, .texts = {"NA"}}),
              ElementsAre(-1, -1));
}

TEST_F(CsvMissingTest, FilledNumbersAreRoundedToFloat) {
  const CsvMissing mean{.kind = Kind::kMean, .texts = {" NA"}};
  absl::StatusOr<RawData> data = Train(kHoles, mean);
  TRIBUTARY_ASSERT_OK(data);
  FillMissing({4, 1030.0 / 3}, &*data);
  EXPECT_THAT(data->numbers,
              ElementsAre(1, 10, 4, static_cast<float>(1030.0 / 3), 3, 20, 8,
                          static_cast<float>(1030.0 / 3), 4, 1000));
}

TEST_F(CsvMissingTest, ANumberCountsHoweverItIsWritten) {
  for (const char* form : {"-999", "-999.0", "-9.99e2", " -999.00"}) {
    const MissingFields missing({"-999", "NA"});
    EXPECT_TRUE(missing.Contains(form)) << form;
    EXPECT_TRUE(MissingFields({form}).Contains("-999.0")) << form;
  }
  EXPECT_FALSE(MissingFields({"-999"}).Contains("999"));
  EXPECT_FALSE(MissingFields({"NA"}).Contains("0"));
}

TEST_F(CsvMissingTest, AMissingCategoryIsNoneOfThem) {
  const absl::StatusOr<RawData> data =
      Train(kHoles, {.kind = Kind::kMedian, .texts = {"NA"}});
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(words_.categories, ElementsAre(ElementsAre("baker", "smith")));
  EXPECT_THAT(data->codes, ElementsAre(1, -1, 0, 1, -1));
}

TEST_F(CsvMissingTest, SkippedRowsAreNotThereAtAll) {
  const absl::StatusOr<RawData> data =
      Train(kHoles, {.kind = Kind::kSkip, .texts = {"NA"}});
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_EQ(data->rows, 2);
  EXPECT_THAT(data->numbers, ElementsAre(1, 10, 3, 20));
  EXPECT_THAT(data->codes, ElementsAre(1, 0));
  EXPECT_THAT(data->targets.labels, ElementsAre(0, 1));
}

TEST_F(CsvMissingTest, ARangeCountsTheSkippedRows) {
  CsvOptions options = Options({.kind = Kind::kSkip, .texts = {"NA"}});
  options.range = {.first = 1, .count = 2};
  const InputFiles file = InputFiles::OverBytes("train.csv", kHoles);
  const absl::StatusOr<RawData> data =
      ReadTrainingCsv(file, options, TargetKind::kClass, &words_);
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(data->numbers, ElementsAre(3, 20));
}

TEST_F(CsvMissingTest, ARowWithoutALabelIsAnErrorUnlessItIsSkipped) {
  const std::string text = "x,job,z,y\n1,smith,1,?\n2,baker,2,1\n";
  EXPECT_THAT(Train(text, {.kind = Kind::kMean}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "train.csv: line 2: column 3 (\"y\"): wanted a label, "
                       "got \"?\"; to leave out such rows, set csv.missing, "
                       "as in missing: skip"));
  const absl::StatusOr<RawData> data = Train(text, {.kind = Kind::kSkip});
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(data->targets.labels, ElementsAre(1));
}

TEST_F(CsvMissingTest, ATextOfTheJobIsAMissingLabelToo) {
  EXPECT_THAT(Train("x,job,z,y\n1,smith,1,-9\n",
                    {.kind = Kind::kMean, .texts = {"-9"}}, TargetKind::kReal),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted a label"));
}

TEST_F(CsvMissingTest, WithoutARuleTheMessageNamesIt) {
  EXPECT_THAT(
      Train("x,job,z,y\n1,smith,?,0\n", {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "line 2: column 2 (\"z\"): wanted a number, got \"?\"; to fill "
               "or skip missing values, set csv.missing, as in missing: mean"));
  EXPECT_THAT(Train("x,job,z,y\n1,smith, N/A,0\n", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "as in missing: {mean: true, texts: [\"N/A\"]}"));
  EXPECT_THAT(Train("x,job,z,y\n1,smith,nan,0\n", {.kind = Kind::kMean}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "as in missing: {mean: true, texts: [\"nan\"]}"));
  EXPECT_THAT(
      Train("x,job,z,y\n1,smith,null,0\n",
            {.kind = Kind::kConstant, .constant = 0.1, .texts = {"NA"}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "as in missing: {constant: 0.1, texts: [\"NA\", \"null\"]}"));
  EXPECT_THAT(Train("x,job,z,y\n1,smith,-,0\n", {.kind = Kind::kSkip}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "as in missing: {skip: true, texts: [\"-\"]}"));
  const absl::StatusOr<RawData> other = Train("x,job,z,y\n1,smith,5m,0\n", {});
  EXPECT_FALSE(absl::StrContains(other.status().message(), "missing"));
}

TEST_F(CsvMissingTest, AColumnWithoutAnyValueHasNoMean) {
  const CsvMissing mean{.kind = Kind::kMean};
  const absl::StatusOr<RawData> data =
      Train("x,job,z,y\n1,smith,,0\n2,smith,?,1\n", mean);
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(
      MeasureFill(mean, *data, PartsOf(*data), words_.header, words_.roles),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "train.csv: column 2 (\"z\"): wanted a value to take "
               "the mean of, but it is missing in all rows"));
}

TEST_F(CsvMissingTest, ATableOfIncompleteRowsIsRefused) {
  EXPECT_THAT(Train("x,job,z,y\n1,smith,,0\n", {.kind = Kind::kSkip}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "train.csv: no row is left"));
}

TEST_F(CsvMissingTest, WithoutARuleAQuestionMarkIsACategory) {
  TRIBUTARY_ASSERT_OK(Train("x,job,z,y\n1,?,1,0\n", {}));
  EXPECT_THAT(words_.categories, ElementsAre(ElementsAre("?")));
}

// Against sorting: even and odd numbers of values, negative ones, equal ones,
// and columns with few values, in parts as they come from a disk.
TEST(ColumnMediansTest, AreThoseOfTheSortedValues) {
  constexpr int64_t kWidth = 70;
  RawData all;
  all.rows = 501;
  all.numeric_width = kWidth;
  std::vector<std::vector<float>> columns(kWidth);
  for (int64_t i = 0; i < all.rows * kWidth; ++i) {
    const int64_t row = i / kWidth, column = i % kWidth;
    float value = static_cast<float>(HashBits(3, row, column) % 2001) - 1000;
    if (column % 3 == 0) value *= 1e-20f;
    if (column % 5 == 0) value = static_cast<float>(row % 3);
    if (row > 10 * (column + 1)) value = std::nanf("");
    all.numbers.push_back(value);
    if (!std::isnan(value)) columns[column].push_back(value);
  }
  const auto parts = [&](const auto& take) {
    for (int64_t first : {0, 200, 201}) {
      const int64_t end = first == 0 ? 200 : first == 200 ? 201 : 501;
      RawData part;
      part.rows = end - first;
      part.numeric_width = kWidth;
      part.numbers.assign(all.numbers.begin() + first * kWidth,
                          all.numbers.begin() + end * kWidth);
      TRIBUTARY_RETURN_IF_ERROR(take(part));
    }
    return absl::OkStatus();
  };
  const auto medians = ColumnMedians(kWidth, parts);
  ASSERT_TRUE(medians.ok()) << medians.status();
  for (int64_t c = 0; c < kWidth; ++c) {
    std::vector<float>& values = columns[c];
    std::sort(values.begin(), values.end());
    const double low = values[(values.size() - 1) / 2];
    const double high = values[values.size() / 2];
    EXPECT_EQ((*medians)[c], (low + high) / 2) << c;
  }
}

}  // namespace
}  // namespace tributary
