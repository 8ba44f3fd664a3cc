// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_hints.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/readers/csv/csv_reader.h"

namespace tributary {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(CsvHintsTest, ADecimalCommaAndSeparatorsAreTold) {
  const auto number = [](const std::string& field) {
    const std::string hint = NumberHint(field);
    const size_t at = hint.find("as in ");
    return at == std::string::npos ? hint : hint.substr(at + 6);
  };
  EXPECT_EQ(number("1,5"), "1.5");
  EXPECT_EQ(number(" -0,25 "), "-0.25");
  EXPECT_EQ(number("1,5e3"), "1.5e3");
  EXPECT_EQ(number("1,234"), "1.234 or 1234");
  EXPECT_EQ(number("1,234,567"), "1234567");
  EXPECT_EQ(number("1.234,56"), "1234.56");
  EXPECT_EQ(number("1,234.56"), "1234.56");
  EXPECT_EQ(number("1.234.567,5"), "1234567.5");
  EXPECT_EQ(number(",5"), ".5");
  for (const char* field : {"", "a", "1,b", "a,b", ",", "1 234,5", "x1,5"}) {
    EXPECT_EQ(number(field), "") << field;
  }
}

TEST(CsvHintsTest, AnInfiniteNumberIsTold) {
  for (const char* field : {"inf", "-Infinity", "1e39", "-1e400"}) {
    EXPECT_THAT(NumberHint(field), HasSubstr("finite as float32")) << field;
  }
  EXPECT_EQ(NumberHint("nan"), "");
}

TEST(CsvHintsTest, AnotherDelimiterIsTold) {
  const auto other = [](std::vector<absl::string_view> fields, char delimiter) {
    return OtherDelimiter(fields, delimiter);
  };
  EXPECT_EQ(other({"a;b;y"}, ','), ';');
  EXPECT_EQ(other({"a\tb\ty"}, ','), '\t');
  EXPECT_EQ(other({"a|b"}, ','), '|');
  EXPECT_EQ(other({"1 2 3"}, ','), ' ');
  EXPECT_EQ(other({"a,b,y"}, '\t'), ',');
  EXPECT_EQ(other({"1", "5;2", "25;3"}, ','), ';');
  EXPECT_EQ(other({"a", "b"}, ','), 0);
  EXPECT_EQ(other({"sepal length", "sepal width"}, ','), 0);
  EXPECT_EQ(other({"a;b", "c", "d"}, ','), 0);
  EXPECT_EQ(other({}, ','), 0);
  const std::vector<absl::string_view> tabs = {"a\tb"};
  EXPECT_THAT(DelimiterHint(tabs, ','), EndsWith("delimiter: \"\\t\""));
}

TEST(CsvHintsTest, ALineThatIsNoRowHasAnotherRemedy) {
  const auto hint = [](std::vector<absl::string_view> fields) {
    return DelimiterHint(fields, ',');
  };
  for (const absl::string_view blanks : {"", " ", "   \t"}) {
    EXPECT_THAT(hint({blanks}), HasSubstr("remove it")) << blanks;
  }
  EXPECT_THAT(hint({"# made by hand"}),
              HasSubstr("a CSV file has no comments"));
  EXPECT_EQ(hint({" 7 "}), "") << "blanks around a field separate nothing";
  EXPECT_EQ(OtherDelimiter(std::vector<absl::string_view>{"  1 "}, ','), 0);
}

TEST(CsvHintsTest, TextsAreQuotedForYaml) {
  EXPECT_EQ(YamlText("null"), "\"null\"");
  EXPECT_EQ(YamlText("a\"b\\c\t\x1B"), "\"a\\\"b\\\\c\\t\\u001b\"");
  EXPECT_EQ(YamlText("Düsseldorf"), "\"Düsseldorf\"");
  EXPECT_EQ(YamlList(std::vector<std::string>()), "[]");
  EXPECT_EQ(YamlList(std::vector<std::string>{"a", "no"}), "[\"a\", \"no\"]");
}

// The messages about whole tables.
std::string ErrorOfTable(const std::string& text, CsvOptions options = {}) {
  if (options.columns.label.empty()) options.columns.label = "y";
  CsvWords words;
  return ErrorOf(ReadTrainingCsv(InputFiles::OverBytes("t.csv", text), options,
                                 TargetKind::kReal, &words));
}

TEST(CsvHintsTest, ATableWithAnotherDelimiterIsTold) {
  const char* as_in = "csv.delimiter, as in delimiter: \";\"";
  EXPECT_THAT(ErrorOfTable("a;b;y\n1;2;3\n"), HasSubstr(as_in));
  EXPECT_THAT(ErrorOfTable("a;b;y\n1;2;3\n", {.columns = {.label = "2"}}),
              HasSubstr(as_in));
  CsvOptions options;
  options.header = false;
  options.columns.label = "2";
  EXPECT_THAT(ErrorOfTable("1;2;3\n", options), HasSubstr(as_in));
  EXPECT_THAT(ErrorOfTable("1,5;2;3\n1;2;3\n", options), HasSubstr(as_in));
  EXPECT_THAT(ErrorOfTable("a,y\n1;2\n"), HasSubstr(as_in));
  EXPECT_THAT(ErrorOfTable("\"a\";\"y\"\n1;2\n"),
              HasSubstr("neither the delimiter, \",\", nor the end, but by "
                        "\";\""));
}

TEST(CsvHintsTest, NumbersOfOtherProgramsAreTold) {
  CsvOptions options;
  options.delimiter = ';';
  EXPECT_THAT(ErrorOfTable("a;y\n1,5;2\n", options),
              HasSubstr("wanted a number, got \"1,5\"; a number has a decimal "
                        "point and no commas, as in 1.5"));
  EXPECT_THAT(ErrorOfTable("a;y\n1;2,5\n", options), HasSubstr("as in 2.5"));
  EXPECT_THAT(ErrorOfTable("a,y\n\"1,234\",2\n"),
              HasSubstr("as in 1.234 or 1234"));
  EXPECT_THAT(ErrorOfTable("a,y\ninf,2\n"),
              HasSubstr("must be finite as float32, which holds up to 3.4e38; "
                        "to fill or skip missing values, set csv.missing, as "
                        "in missing: {mean: true, texts: [\"inf\"]}"));
}

TEST(CsvHintsTest, NamesCategoriesAndLabelsInAnotherEncodingAreTold) {
  const std::string convert =
      " is not UTF-8, so convert the file, as in: "
      "iconv -f WINDOWS-1252 -t UTF-8 < t.csv > new-t.csv";
  EXPECT_EQ(ErrorOfTable("gr\xF6\xDF"
                         "e,a\n1,2\n",
                         {.columns = {.label = "a"}}),
            "t.csv: line 1: the header" + convert);
  EXPECT_EQ(ErrorOfTable("a,y\nx,1\n\xE9,2\n",
                         {.columns = {.label = "y", .categorical = {"a"}}}),
            "t.csv: line 3: column 0 (\"a\"): \"\\xe9\"" + convert);
  CsvWords words;
  EXPECT_EQ(ErrorOf(ReadTrainingCsv(
                InputFiles::OverBytes("t.csv", "a,y\n1,\xE9\n2,\xE8\n"),
                {.columns = {.label = "y"}}, TargetKind::kClass, &words)),
            "t.csv: line 2: column 1 (\"y\"): \"\\xe9\"" + convert);
}

TEST(CsvHintsTest, TextsAreShownAsTheyAreWritten) {
  EXPECT_THAT(ErrorOfTable("größe,y\nDüsseldorf,2\n"),
              HasSubstr("column 0 (\"größe\"): wanted a number, got "
                        "\"Düsseldorf\""));
  EXPECT_THAT(ErrorOfTable("a,y\nD\xFCsseldorf,2\n"),
              HasSubstr("got \"D\\xfcsseldorf\""));
  EXPECT_THAT(ErrorOfTable("\"a\nb\",y\n\x1B[31m,2\n"),
              HasSubstr("column 0 (\"a\\nb\"): wanted a number, got "
                        "\"\\033[31m\""));
}

}  // namespace
}  // namespace tributary
