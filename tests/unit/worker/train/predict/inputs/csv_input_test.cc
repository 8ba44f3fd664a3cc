// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/worker/train/predict/records.h"
#include "worker/train/predict/inputs/input_rows.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StatusIs;

class CsvInputTest : public testing::TemporaryFolderTest {
 protected:
  absl::StatusOr<std::unique_ptr<InputRows>> Open(const std::string& text,
                                                  InputOptions options = {}) {
    options.path = Write("rows.csv", text);
    return OpenInput(table_, options);
  }
  // All rows of the file, in one batch.
  absl::StatusOr<RawData> ReadAll(const std::string& text,
                                  InputOptions options = {}) {
    auto input = Open(text, options);
    if (!input.ok()) return input.status();
    return (*input)->Next(1000);
  }

  v1::Preprocessing table_ = AnimalTable();
};

TEST_F(CsvInputTest, ColumnsAreFoundByName) {
  const auto data = ReadAll("mass,colour,more,age\n2,red,x,5\n14,blue,y,1\n");
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_EQ(data->rows, 2);
  EXPECT_THAT(data->numbers, ElementsAre(5, 2, 1, 14));
  EXPECT_THAT(data->codes, ElementsAre(1, 0));
  EXPECT_THAT(data->code_widths, ElementsAre(2));
  EXPECT_EQ(data->targets.width, 0);
}

TEST_F(CsvInputTest, WithoutAHeaderTheLabelMayBeMissing) {
  table_ = AnimalTable(/*header=*/false);
  for (const char* text : {"dog,5,red,2\n", "5,red,2\n"}) {
    const auto data = ReadAll(text);
    TRIBUTARY_EXPECT_OK(data);
    EXPECT_THAT(data->numbers, ElementsAre(5, 2));
    EXPECT_THAT(data->codes, ElementsAre(1));
  }
  EXPECT_THAT(ReadAll("5,2\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rows.csv: line 1: wanted 4 columns, or 3 without the "
                       "label, got 2"));
  EXPECT_THAT(
      ReadAll("5,red,2\n", {.labels = true}),
      StatusIs(absl::StatusCode::kInvalidArgument, "wanted 4 columns, got 3"));
}

TEST_F(CsvInputTest, RowsComeInBatches) {
  auto input = Open("age,mass,colour\n1,1,red\n2,2,red\n3,3,red\n");
  TRIBUTARY_ASSERT_OK(input);
  EXPECT_THAT((*input)->Next(2)->numbers, ElementsAre(1, 1, 2, 2));
  EXPECT_THAT((*input)->Next(2)->numbers, ElementsAre(3, 3));
  EXPECT_EQ((*input)->Next(2)->rows, 0);
}

TEST_F(CsvInputTest, ARangeOfRowsIsRead) {
  const auto data =
      ReadAll("age,mass,colour\n1,1,red\n2,2,red\n3,3,red\n4,4,red\n",
              {.range = {.first = 1, .count = 2}});
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(data->numbers, ElementsAre(2, 2, 3, 3));
}

TEST_F(CsvInputTest, OffsetsAreTakenOffNumbersAndFills) {
  table_.mutable_numeric()->add_offset(1.7e9);
  table_.mutable_numeric()->add_offset(0);
  table_.mutable_csv()->add_missing("");
  table_.mutable_csv()->add_fill(1.7e9 + 2);
  table_.mutable_csv()->add_fill(5);
  const auto data = ReadAll("age,mass,colour\n1700000003,4,red\n,,red\n");
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(data->numbers, ElementsAre(3, 4, 2, 5));
}

TEST_F(CsvInputTest, LabelsAreTheClassesOfTheTraining) {
  const auto data = ReadAll(
      "animal,age,mass,colour\ndog,1,1,red\ncat,2,2,red\n", {.labels = true});
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(data->targets.labels, ElementsAre(1, 0));
  EXPECT_THAT(data->targets.greatest_place, HasSubstr("rows.csv: line 2"));
  EXPECT_THAT(
      ReadAll("animal,age,mass,colour\neel,1,1,red\n", {.labels = true}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "line 2: column 0 (\"animal\"): wanted one of the "
               "training data's labels, got \"eel\""));
}

TEST_F(CsvInputTest, AnErrorNamesFileLineAndColumn) {
  EXPECT_THAT(ReadAll("age,mass,colour\n1,2,red\n1,,red\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rows.csv: line 3: column 1 (\"mass\"): wanted a "
                       "number, got \"\""));
  EXPECT_THAT(ReadAll("age,mass,colour\n1,2,red,4\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rows.csv: line 2: wanted 3 fields, got 4"));
  EXPECT_THAT(ReadAll("age,colour\n1,red\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rows.csv: line 1: wanted a column \"mass\""));
  EXPECT_THAT(ReadAll("age,mass,colour,age\n1,2,red,4\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "\"age\" appears twice in the header"));
  EXPECT_THAT(ReadAll(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                    "rows.csv: wanted rows"));
}

TEST_F(CsvInputTest, AnErrorSaysWhatMayBeMeant) {
  const auto error = [this](const std::string& text) {
    return std::string(ReadAll(text).status().message());
  };
  EXPECT_THAT(error("Age,mass,colour\n1,2,red\n"),
              HasSubstr("rows.csv: line 1: wanted a column \"age\" as in the "
                        "training data, the header has none; did you mean "
                        "\"Age\"?"));
  EXPECT_THAT(
      error("age;mass;colour\n1;2;red\n"),
      HasSubstr("the fields seem to be separated by \";\", and those of "
                "the training data by \",\""));
  EXPECT_THAT(error("age,mass,colour\n1,\"2,5\",red\n"),
              HasSubstr("got \"2,5\"; a number has a decimal point"));
  EXPECT_THAT(error("age,mass,colour\n1,2,größer\n"),
              HasSubstr("got \"größer\""));
  EXPECT_THAT(error("age,mass,colour\r1,2,red\r"),
              HasSubstr("line 1: a carriage return within a row"));
}

TEST_F(CsvInputTest, AColumnWithoutANameOfItsOwnKeepsItsPlace) {
  table_.mutable_csv()->mutable_numeric(0)->clear_name();  // column 1
  EXPECT_THAT(ReadAll("animal,mass,colour,mass\n", {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "\"mass\" appears twice in the header"));
  const auto data = ReadAll("x,,colour,mass\ndog,5,red,2\n");
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(data->numbers, ElementsAre(5, 2));
  EXPECT_THAT(ReadAll(",x,colour,mass\n5,dog,red,2\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rows.csv: line 1: wanted the columns in the order of "
                       "the training data, where column 1 has no name or a "
                       "name that appears twice, got \"x\""));
}

TEST_F(CsvInputTest, AClassMayLookLikeAMissingLabel) {
  table_.add_class_names("?");
  table_.mutable_csv()->add_missing("?");
  table_.mutable_csv()->set_skip_missing(true);
  const auto data = ReadAll("animal,age,mass,colour\n?,1,1,red\n,1,1,red\n",
                            {.labels = true});
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(data->targets.labels, ElementsAre(2));
}

TEST_F(CsvInputTest, MissingValuesBecomeThoseOfTheTraining) {
  for (const char* text : {"", "?", "NA"})
    table_.mutable_csv()->add_missing(text);
  table_.mutable_csv()->add_fill(2.5);
  table_.mutable_csv()->add_fill(7);
  const auto data = ReadAll("age,mass,colour\n, NA,red\n1,2,?\n");
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(data->numbers, ElementsAre(2.5, 7, 1, 2));
  EXPECT_THAT(data->codes, ElementsAre(1, -1));
}

TEST_F(CsvInputTest, RowsThatTrainingLeftOutAreNotPredictedButMayBeLabelled) {
  table_.mutable_csv()->add_missing("");
  table_.mutable_csv()->add_missing("?");
  table_.mutable_csv()->set_skip_missing(true);
  const std::string text =
      "animal,age,mass,colour\ndog,1,,red\ncat,1,2,blue\n?,1,2,red\n"
      "dog,1,2,?\n";
  EXPECT_THAT(ReadAll(text),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rows.csv: line 2: column 2 (\"mass\"): wanted a value, "
                       "because the model was trained without rows that lack "
                       "one (missing: skip), got \"\""));
  auto input = Open(text, {.labels = true});
  TRIBUTARY_ASSERT_OK(input);
  const auto data = (*input)->Next(10);
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(data->numbers, ElementsAre(1, 2));
  EXPECT_THAT(data->targets.labels, ElementsAre(0));
  EXPECT_THAT((*input)->TakeWarnings(),
              ElementsAre(HasSubstr("rows.csv: 3 rows are left out because a "
                                    "value is missing (first in line 2)")));
}

TEST_F(CsvInputTest, AnUnknownCategoryIsAnErrorOrNoneOfThem) {
  const std::string text = "age,mass,colour\n1,2,pink\n3,4,red\n5,6,pink\n";
  EXPECT_THAT(ReadAll(text),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rows.csv: line 2: column 2 (\"colour\"): wanted a "
                       "category of the training data"));
  auto input = Open(text, {.allow_unknown = true});
  TRIBUTARY_ASSERT_OK(input);
  EXPECT_THAT((*input)->Next(10)->codes, ElementsAre(-1, 1, -1));
  EXPECT_THAT((*input)->TakeWarnings(),
              ElementsAre(HasSubstr("2 rows have a category that the training "
                                    "data does not have (first \"pink\" in "
                                    "line 2)")));
  EXPECT_THAT((*input)->TakeWarnings(), IsEmpty());
}

}  // namespace
}  // namespace tributary
