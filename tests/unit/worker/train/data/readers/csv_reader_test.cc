// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_reader.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Columns age, job and label, where age is numeric and job categorical.
CsvOptions PeopleOptions() {
  CsvOptions options;
  options.columns = {.label = "label",
                     .numeric = {"age"},
                     .categorical = {"job"},
                     .ignore = {}};
  return options;
}

// Every column except `label` is numeric.
CsvOptions NumericOptions(const std::string& label, bool header) {
  CsvOptions options;
  options.header = header;
  options.columns.label = label;
  return options;
}

absl::StatusOr<RawData> Train(const std::string& text,
                              const CsvOptions& options, TargetKind kind,
                              CsvWords* words) {
  const InputFiles file = InputFiles::OverBytes("train.csv", text);
  return ReadTrainingCsv(file, options, kind, words);
}

absl::StatusOr<RawData> Train(const std::string& text,
                              const CsvOptions& options,
                              TargetKind kind = TargetKind::kClass) {
  CsvWords words;
  return Train(text, options, kind, &words);
}

constexpr char kPeople[] =
    "age,job,label\n"
    "30,smith,no\n"
    "40.5,baker,yes\n"
    " 5,?,no\n";

TEST(CsvReaderTest, CategoriesAndTextClassesAreNumberedInSortedOrder) {
  CsvWords words;
  const auto data = Train(kPeople, PeopleOptions(), TargetKind::kClass, &words);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows, 3);
  EXPECT_THAT(data->feature_shape, ElementsAre(4));
  EXPECT_THAT(data->numbers, ElementsAre(30, 40.5, 5));
  EXPECT_THAT(data->code_widths, ElementsAre(3));
  EXPECT_THAT(words.categories,
              ElementsAre(ElementsAre("?", "baker", "smith")));
  EXPECT_THAT(data->codes, ElementsAre(2, 1, 0));
  EXPECT_THAT(words.classes, ElementsAre("no", "yes"));
  EXPECT_THAT(data->targets.class_names, ElementsAre("no", "yes"));
  EXPECT_THAT(data->targets.labels, ElementsAre(0, 1, 0));
}

TEST(CsvReaderTest, TestRowsAreReadWithTheTrainingWords) {
  CsvWords words;
  ASSERT_TRUE(
      Train(kPeople, PeopleOptions(), TargetKind::kBinary, &words).ok());
  const InputFiles file = InputFiles::OverBytes("test.csv",
                                                "job,label,age\n"
                                                "miller,yes,1\n"
                                                "smith,no,2\n"
                                                "miller,no,3\n"
                                                "actor,no,4\n");
  std::vector<std::string> warnings;
  const auto data =
      ReadTestCsv(file, PeopleOptions(), TargetKind::kBinary, words, &warnings);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->codes, ElementsAre(-1, 2, -1, -1));
  EXPECT_THAT(data->code_widths, ElementsAre(3));
  EXPECT_THAT(data->targets.values, ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(
      warnings,
      ElementsAre("test.csv: column 0 (\"job\"): 3 rows have a category "
                  "that the training data does not have (first "
                  "\"miller\" in line 2)"));
}

TEST(CsvReaderTest, ATestLabelThatTrainingDoesNotHaveIsTold) {
  CsvWords words;
  ASSERT_TRUE(Train(kPeople, PeopleOptions(), TargetKind::kClass, &words).ok());
  std::vector<std::string> warnings;
  const InputFiles test =
      InputFiles::OverBytes("test.csv", "age,job,label\n1,smith,maybe\n");
  EXPECT_EQ(
      ErrorOf(ReadTestCsv(test, PeopleOptions(), TargetKind::kClass, words,
                          &warnings)),
      "test.csv: line 2: column 2 (\"label\"): wanted one of the training "
      "data's labels, got \"maybe\"");
  // Numbers in training, a word in the test.
  ASSERT_TRUE(Train("x,y\n1,0\n2,3\n", NumericOptions("y", true),
                    TargetKind::kClass, &words)
                  .ok());
  const InputFiles text = InputFiles::OverBytes("test.csv", "x,y\n1,0\n1,b\n");
  EXPECT_THAT(ErrorOf(ReadTestCsv(text, NumericOptions("y", true),
                                  TargetKind::kClass, words, &warnings)),
              HasSubstr("line 3: column 1 (\"y\"): wanted a class number"));
}

TEST(CsvReaderTest, ATestFileWithOtherCategoricalColumnsIsTold) {
  CsvWords words;
  ASSERT_TRUE(
      Train("x,y\n1,0\n", NumericOptions("y", true), TargetKind::kClass, &words)
          .ok());
  std::vector<std::string> warnings;
  const InputFiles test = InputFiles::OverBytes("test.csv", kPeople);
  EXPECT_EQ(ErrorOf(ReadTestCsv(test, PeopleOptions(), TargetKind::kClass,
                                words, &warnings)),
            "test.csv: wanted 0 categorical columns as in the training data, "
            "got 1");
}

// Names that appear twice cannot be written instead of positions.
TEST(CsvReaderTest, ARemedyNamesNoColumnThatItCannot) {
  CsvOptions options;
  options.columns = {"y", {}, {}, {}};
  CsvWords words;
  ASSERT_TRUE(
      Train("a,a,c,y\n1,2,3,0\n", options, TargetKind::kReal, &words).ok());
  std::vector<std::string> warnings;
  const InputFiles file =
      InputFiles::OverBytes("test.csv", "c,a,a,y\n3,1,2,0\n");
  EXPECT_EQ(
      ErrorOf(ReadTestCsv(file, options, TargetKind::kReal, words, &warnings)),
      "test.csv: line 1: column 0 (\"c\"): wanted \"a\" at this position, "
      "as in the training data");
}

TEST(CsvReaderTest, ColumnsThatGoByPlaceHaveTheNamesOfTheTraining) {
  CsvWords words;
  const auto read = [&words](const CsvColumnNames& columns,
                             const std::string& test) {
    CsvOptions options;
    options.columns = columns;
    EXPECT_TRUE(
        Train("a,b,c,y\n1,2,3,0\n", options, TargetKind::kReal, &words).ok());
    std::vector<std::string> warnings;
    const InputFiles file = InputFiles::OverBytes("test.csv", test);
    return ReadTestCsv(file, options, TargetKind::kReal, words, &warnings);
  };
  const CsvColumnNames by_default = {"y", {}, {}, {}};
  EXPECT_EQ(
      ErrorOf(read(by_default, "\nb,a,c,y\n2,1,3,0\n")),
      "test.csv: line 2: column 0 (\"b\"): wanted \"a\" at this position, "
      "as in the training data; if the columns may have another order, "
      "name all that are used, as in columns: {label: \"y\", numeric: "
      "[\"a\", \"b\", \"c\"]}");
  EXPECT_THAT(ErrorOf(read(by_default, "a,b,d,y\n1,2,3,0\n")),
              HasSubstr("column 2 (\"d\"): wanted \"c\""));
  EXPECT_THAT(ErrorOf(read({"y", {"0-1"}, {}, {}}, "b,a,c,y\n2,1,3,0\n")),
              HasSubstr("column 0 (\"b\"): wanted \"a\""));
  EXPECT_THAT(ErrorOf(read({"3", {"a"}, {}, {}}, "a,b,y,c\n1,2,0,3\n")),
              HasSubstr("column 3 (\"c\"): wanted \"y\""));
  // Numbers that are positions there, and names here.
  EXPECT_THAT(ErrorOf(read({"y", {"1-2"}, {}, {}}, "1,2,d,y\n2,3,1,0\n")),
              HasSubstr("column 0 (\"1\"): wanted \"b\""));
  // By name they may lie anywhere.
  EXPECT_THAT(read({"y", {"a", "b"}, {}, {}}, "c,b,a,y\n3,2,1,0\n")->numbers,
              ElementsAre(1, 2));
  EXPECT_THAT(read(by_default, "y,a,b,c\n0,1,2,3\n")->numbers,
              ElementsAre(1, 2, 3));
}

TEST(CsvReaderTest, NumericLabelsAreClassesAsTheyStand) {
  const auto data = Train("0,1,7\n2,3,2\n", NumericOptions("2", false));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->numbers, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(data->targets.labels, ElementsAre(7, 2));
  EXPECT_THAT(data->targets.class_names, IsEmpty());
}

TEST(CsvReaderTest, BinaryLabelsAreZeroAndOneOrTwoWords) {
  const CsvOptions options = NumericOptions("y", true);
  EXPECT_THAT(
      Train("x,y\n1,1\n1,0\n", options, TargetKind::kBinary)->targets.values,
      ElementsAre(1, 0));
  EXPECT_THAT(Train("x,y\n1,>50K\n1,<=50K\n", options, TargetKind::kBinary)
                  ->targets.values,
              ElementsAre(1, 0));
  EXPECT_EQ(
      ErrorOf(Train("x,y\n1,a\n1,b\n1,c\n", options, TargetKind::kBinary)),
      "train.csv: column 1 (\"y\"): wanted 0 and 1 or two different words as "
      "labels, got 3 different: \"a\", \"b\", \"c\"");
  EXPECT_THAT(
      ErrorOf(Train("x,y\n1,a\n1, a\n1,b\n1,B\n1,c\n", options,
                    TargetKind::kBinary)),
      HasSubstr("got 5 different: \" a\", \"B\", \"a\", \"b\" and 1 more"));
}

TEST(CsvReaderTest, RealLabelsAreNumbersAlone) {
  const CsvOptions options = NumericOptions("y", true);
  EXPECT_THAT(
      Train("x,y\n1,-2.5\n1,1e3\n", options, TargetKind::kReal)->targets.values,
      ElementsAre(-2.5f, 1000));
  EXPECT_EQ(
      ErrorOf(Train("x,y\n1,2\n1,big\n", options, TargetKind::kReal)),
      "train.csv: line 3: column 1 (\"y\"): wanted a number, got \"big\"");
}

TEST(CsvReaderTest, WhatIsNoNumberIsToldWithFileLineAndColumn) {
  const CsvOptions options = NumericOptions("y", true);
  for (const std::string wrong :
       {"", "?", "abc", "1x", "nan", "inf", "1e39", "0x10", "1 2"}) {
    EXPECT_THAT(
        ErrorOf(Train("x,y\n1,0\n\n" + wrong + ",1\n", options)),
        StartsWith("train.csv: line 4: column 0 (\"x\"): wanted a number, got "
                   "\"" +
                   wrong + "\""));
  }
  EXPECT_EQ(
      ErrorOf(Train("x,y\n1,0\n2,?\n", options)),
      "train.csv: line 3: column 1 (\"y\"): wanted a label, got \"?\"; to "
      "leave out such rows, set csv.missing, as in missing: skip");
  EXPECT_THAT(ErrorOf(Train("x,y\n" + std::string(100, 'z') + ",1\n", options)),
              HasSubstr("got \"" + std::string(60, 'z') + "...\""));
}

TEST(CsvReaderTest, RowsOfAnotherLengthAreTold) {
  const CsvOptions options = NumericOptions("y", true);
  EXPECT_EQ(ErrorOf(Train("x,y\n1,0\n1\n", options)),
            "train.csv: line 3: wanted 2 fields, got 1");
  EXPECT_EQ(ErrorOf(Train("x,y\n1,0,2\n", options)),
            "train.csv: line 2: wanted 2 fields, got 3");
}

TEST(CsvReaderTest, ReadsARangeOfRows) {
  CsvOptions options = NumericOptions("y", true);
  const std::string text = "x,y\n1,0\n2,1\n3,0\nbroken\n";
  options.range = {1, 2};
  EXPECT_THAT(Train(text, options)->numbers, ElementsAre(2, 3));
  const std::string whole = "x,y\n1,0\n2,1\n3,0\n";
  options.range = {2, 0};
  EXPECT_THAT(Train(whole, options)->numbers, ElementsAre(3));
  options.range = {2, 2};
  EXPECT_EQ(ErrorOf(Train(whole, options)),
            "train.csv: wanted 2 rows from row 2 on, but there are 3");
  options.range = {3, 0};
  EXPECT_EQ(ErrorOf(Train(whole, options)),
            "train.csv: wanted the rows from row 3 on, but there are 3");
  options.range = {-1, 0};
  EXPECT_THAT(ErrorOf(Train(whole, options)), HasSubstr("got -1"));
}

TEST(CsvReaderTest, FilesWithoutRowsAreTold) {
  EXPECT_EQ(ErrorOf(Train("", NumericOptions("y", true))),
            "train.csv: wanted rows, but the file is empty");
  EXPECT_EQ(ErrorOf(Train("x,y\n", NumericOptions("y", true))),
            "train.csv: wanted the rows from row 0 on, but there are 0");
}

TEST(CsvReaderTest, TooManyCategoriesAreTold) {
  std::string text = "c,y\n";
  for (int i = 0; i <= 1 << 20; ++i) text += std::to_string(i) + ",0\n";
  CsvOptions options;
  options.columns.label = "y";
  options.columns.categorical = {"c"};
  EXPECT_EQ(ErrorOf(Train(text, options)),
            "train.csv: the categorical columns make 1048577 features, more "
            "than 1048576");
}

std::string ColumnsError(const CsvColumnNames& names,
                         const std::vector<std::string>& header = {"a", "b",
                                                                   "c", "d"}) {
  return std::string(
      ResolveCsvColumns(names, header, 4, "f.csv").status().message());
}

TEST(CsvColumnsTest, NamesNumbersAndRangesAreOneLanguage) {
  const auto roles = ResolveCsvColumns({"d", {"2", "0-1"}, {}, {}},
                                       {"a", "b", "c", "d"}, 4, "f.csv");
  ASSERT_TRUE(roles.ok()) << roles.status();
  EXPECT_EQ(roles->label, 3);
  EXPECT_THAT(roles->numeric, ElementsAre(2, 0, 1));
  const auto rest =
      ResolveCsvColumns({"0", {}, {}, {"2"}}, {}, /*num_columns=*/4, "f.csv");
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_THAT(rest->numeric, ElementsAre(1, 3));
  // A header that looks like a number is a name first.
  const auto named =
      ResolveCsvColumns({"0", {"3"}, {}, {}}, {"3", "2", "1", "0"}, 4, "f.csv");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->label, 3);
  EXPECT_THAT(named->numeric, ElementsAre(0));
}

TEST(CsvColumnsTest, WhatCannotBeMeantIsTold) {
  EXPECT_EQ(ColumnsError({"e", {}, {}, {}}),
            "f.csv: columns.label: no column \"e\"; columns are a, b, c, d");
  EXPECT_EQ(ColumnsError({"4", {}, {}, {}}, {}),
            "f.csv: columns.label: no column \"4\"; columns are 0 to 3");
  EXPECT_THAT(ColumnsError({"a", {"2-9"}, {}, {}}), HasSubstr("\"2-9\""));
  EXPECT_THAT(ColumnsError({"a", {"3-2"}, {}, {}}), HasSubstr("\"3-2\""));
  EXPECT_THAT(ColumnsError({"a", {"-1"}, {}, {}}), HasSubstr("\"-1\""));
  EXPECT_THAT(ColumnsError({"", {}, {}, {}}), HasSubstr("no column \"\""));
  EXPECT_THAT(ColumnsError({"0-1", {}, {}, {}}),
              HasSubstr("columns.label: wanted one column, got \"0-1\""));
  EXPECT_EQ(ColumnsError({"a", {"b"}, {"0-1"}, {}}),
            "f.csv: column 0 (\"a\") is named twice, in columns.label and "
            "columns.categorical");
  EXPECT_THAT(ColumnsError({"a", {}, {}, {}}, {"a", "b", "a", "c"}),
              HasSubstr("\"a\" appears twice in the header; name the column "
                        "by its number"));
  EXPECT_EQ(ColumnsError({"a", {}, {}, {"b", "c", "d"}}),
            "f.csv: no column is left to learn from");
}

TEST(CsvReaderTest, RowsOfSeveralFilesFollowOneAnother) {
  const InputFiles files(
      {WriteFile("people_1.csv", "age,job,label\n30,smith,no\n"),
       WriteFile("people_2.csv", "age,job,label\n40,baker,yes\n"),
       WriteFile("people_3.csv", "age,job,label\n50,smith,no\n60,cook,yes\n")});
  CsvOptions options = PeopleOptions();
  CsvWords words;
  auto data = ReadTrainingCsv(files, options, TargetKind::kClass, &words);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows, 4);
  EXPECT_THAT(data->numbers, ElementsAre(30, 40, 50, 60));
  EXPECT_THAT(words.categories,
              ElementsAre(ElementsAre("baker", "cook", "smith")));
  EXPECT_THAT(data->codes, ElementsAre(2, 0, 2, 1));
  EXPECT_THAT(data->targets.labels, ElementsAre(0, 1, 0, 1));

  options.range = {.first = 1, .count = 2};  // of the rows of all files
  data = ReadTrainingCsv(files, options, TargetKind::kClass, &words);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->numbers, ElementsAre(40, 50));
}

TEST(CsvReaderTest, SeveralFilesMustHaveTheSameColumns) {
  const std::string first =
      WriteFile("columns_1.csv", "age,job,label\n30,smith,no\n");
  const auto error = [&](const std::string& second) {
    CsvWords words;
    return ErrorOf(
        ReadTrainingCsv(InputFiles({first, WriteFile("columns_2.csv", second)}),
                        PeopleOptions(), TargetKind::kClass, &words));
  };
  EXPECT_THAT(error("age,label\n30,no\n"),
              HasSubstr("columns_2.csv: line 1: wanted the 3 columns of " +
                        first + ", got 2"));
  EXPECT_THAT(
      error("age,label,job\n30,no,smith\n"),
      HasSubstr("columns_2.csv: line 1: column 1: wanted \"job\" as in " +
                first + ", got \"label\""));
  // An error names the file and the line in it.
  EXPECT_THAT(
      error("age,job,label\nold,smith,no\n"),
      HasSubstr("columns_2.csv: line 2: column 0 (\"age\"): wanted a number"));
  EXPECT_THAT(error(""),
              HasSubstr("columns_2.csv: wanted rows, but the file is empty"));
}

}  // namespace
}  // namespace tributary
