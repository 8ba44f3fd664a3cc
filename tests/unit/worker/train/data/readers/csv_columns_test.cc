// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_columns.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Header = std::vector<std::string>;

// The numeric columns.
std::vector<int> NumericOf(const CsvColumnNames& names, const Header& header) {
  const auto roles = ResolveCsvColumns(
      names, header, static_cast<int>(header.size()), "f.csv");
  EXPECT_TRUE(roles.ok()) << roles.status();
  return roles.ok() ? roles->numeric : std::vector<int>{};
}

std::string ErrorWith(const CsvColumnNames& names, const Header& header) {
  return std::string(
      ResolveCsvColumns(names, header, static_cast<int>(header.size()), "f.csv")
          .status()
          .message());
}

TEST(CsvColumnNumbersTest, NamesOfTheHeaderWinInRanges) {
  // After the row numbers that pandas writes, each name is one place later.
  EXPECT_THAT(NumericOf({"y", {"0-2"}, {}, {}}, {"", "0", "1", "2", "y"}),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(NumericOf({"y", {"1-3"}, {}, {}}, {"1", "2", "3", "y"}),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(NumericOf({"y", {"1-3"}, {}, {}}, {"3", "y", "1", "2"}),
              ElementsAre(2, 3, 0));
  EXPECT_THAT(NumericOf({"y", {"2019-2020"}, {}, {}}, {"2019", "2020", "y"}),
              ElementsAre(0, 1));
  // Names that are these numbers in another notation.
  EXPECT_THAT(NumericOf({"y", {"1-2"}, {}, {}}, {"", "01", "02", "03", "y"}),
              ElementsAre(1, 2));
  EXPECT_THAT(
      NumericOf({"y", {"0-1", "2"}, {}, {}}, {"", "0.0", "1.0", " 2", "y"}),
      ElementsAre(1, 2, 3));
}

TEST(CsvColumnNumbersTest, WithoutSuchNamesTheyArePositions) {
  EXPECT_THAT(NumericOf({"y", {"0-1"}, {}, {}}, {"2019", "2020", "y"}),
              ElementsAre(0, 1));
  EXPECT_THAT(NumericOf({"y", {"0"}, {}, {}}, {"2019", "-1", "0.5", "y"}),
              ElementsAre(0));
  EXPECT_THAT(NumericOf({"3", {"0-2"}, {}, {}}, {"a", "b", "c", "d"}),
              ElementsAre(0, 1, 2));
  // A name that looks like a range is a name.
  EXPECT_THAT(NumericOf({"2", {"10-20", "0"}, {}, {}}, {"a", "10-20", "y"}),
              ElementsAre(1, 0));
}

TEST(CsvColumnNumbersTest, NumbersOfWhichOnlySomeAreNamesAreAmbiguous) {
  EXPECT_EQ(ErrorWith({"y", {"0-2"}, {}, {}}, {"1", "2", "3", "y"}),
            "f.csv: columns.numeric: \"0-2\" is ambiguous, because some "
            "numbers in columns are names of the header, such as \"1\", and "
            "others are not; write the names of the columns instead");
  // One number is a name, another one is not: in one field and in two.
  EXPECT_THAT(ErrorWith({"y", {"0", "2"}, {}, {}}, {"1", "2", "3", "y"}),
              HasSubstr("columns.numeric: \"0\" is ambiguous"));
  EXPECT_THAT(ErrorWith({"y", {"1", "0"}, {}, {}}, {"1", "2", "3", "y"}),
              HasSubstr("columns.numeric: \"0\" is ambiguous"));
  EXPECT_THAT(
      ErrorWith({"y", {"0-1"}, {}, {"3"}}, {"", "0", "1", "2", "y"}),
      HasSubstr("columns.ignore: \"3\" is ambiguous, because some numbers in "
                "columns are names of the header, such as \"0\""));
  EXPECT_THAT(ErrorWith({"0", {"1"}, {}, {}}, {"2", "1", "0.5"}),
              HasSubstr("columns.label: \"0\" is ambiguous"));
}

TEST(CsvColumnNumbersTest, WhatIsNoNumberIsAName) {
  for (const char* name : {"+1", " 1", "1 - 2", "1-2-3", "-", "1-",
                           "9999999999", "0-99999999999"}) {
    EXPECT_THAT(ErrorWith({"a", {name}, {}, {}}, {"a", "b", "c"}),
                HasSubstr("no column \"" + std::string(name) + "\""));
  }
}

TEST(CsvColumnNumbersTest, ANumberThatTwoNamesAreIsTold) {
  EXPECT_THAT(ErrorWith({"y", {"0-1"}, {}, {}}, {"0", "1", "1.0", "y"}),
              HasSubstr("\"1.0\" appears twice in the header"));
  EXPECT_THAT(ErrorWith({"y", {"0"}, {}, {}}, {"0", "0", "y"}),
              HasSubstr("\"0\" appears twice in the header; give the columns "
                        "different names"));
}

TEST(CsvColumnNumbersTest, AColumnWithoutANameIsNoFeatureByDefault) {
  const std::string error = ErrorWith({"y", {}, {}, {}}, {"", "a", "y"});
  EXPECT_THAT(error, HasSubstr("f.csv: a column has no name"));
  EXPECT_THAT(error, HasSubstr("as in ignore: [\"\"]"));
  EXPECT_THAT(NumericOf({"y", {}, {}, {""}}, {"", "a", "y", ""}),
              ElementsAre(1));
  EXPECT_THAT(NumericOf({"y", {"", "a"}, {}, {}}, {"", "a", "y"}),
              ElementsAre(0, 1));
  // Such a column as pandas names it, and others beside it.
  EXPECT_THAT(
      ErrorWith({"y", {}, {}, {"id"}}, {"Unnamed: 0", "id", "a", " ", "y"}),
      HasSubstr("as in ignore: [\"id\", \"Unnamed: 0\", \" \"]"));
  // A file without a header has no names.
  EXPECT_TRUE(ResolveCsvColumns({"0", {}, {}, {}}, {}, 3, "f.csv").ok());
}

TEST(CsvColumnNumbersTest, TheNearestNameIsOffered) {
  const auto hint = [](const std::string& name, const Header& header) {
    const std::string error = ErrorWith({name, {}, {}, {}}, header);
    return error.substr(error.find("; ") + 2);
  };
  EXPECT_EQ(hint("y", {"a", "Y"}), "did you mean \"Y\"?");
  EXPECT_EQ(hint("y", {"a", " y"}), "did you mean \" y\"?");
  EXPECT_EQ(hint("Label ", {"a", "label"}), "did you mean \"label\"?");
  EXPECT_EQ(hint("lable", {"a", "label"}), "did you mean \"label\"?");
  EXPECT_EQ(hint("größe", {"a", "grösse"}), "did you mean \"grösse\"?");
  EXPECT_EQ(hint("age", {"height", "weight"}), "columns are height, weight");
  // Names are told from the commas between them, and shown as they are.
  EXPECT_EQ(hint("z", {"a b", "", "c,d", "größe", "x"}),
            "columns are \"a b\", \"\", \"c,d\", größe, x");
}

TEST(CsvColumnNumbersTest, WordsOfTheHeaderAreToldFromNumbers) {
  const auto uses_words = [](const CsvColumnNames& names,
                             const Header& header) {
    return ResolveCsvColumns(names, header, static_cast<int>(header.size()),
                             "f.csv")
        ->uses_words;
  };
  EXPECT_TRUE(uses_words({"y", {}, {}, {}}, {"1", "y"}));
  EXPECT_TRUE(uses_words({"1", {"a"}, {}, {}}, {"a", "b"}));
  EXPECT_FALSE(uses_words({"1", {}, {}, {}}, {"a", "b"}));
  EXPECT_FALSE(uses_words({"2", {}, {}, {}}, {"1", "2"}));
  EXPECT_FALSE(uses_words({"5.1", {}, {}, {}}, {"5.1", "x"}));
  EXPECT_FALSE(uses_words({"2020-01-01", {}, {}, {}}, {"2020-01-01", "x"}));
}

}  // namespace
}  // namespace tributary
