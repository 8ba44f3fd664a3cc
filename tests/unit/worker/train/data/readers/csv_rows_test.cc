// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_rows.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Row = std::vector<std::string>;

struct Result {
  std::vector<Row> rows;
  std::vector<int64_t> lines;
  std::string error;
};

Result ReadRows(const std::string& text, char delimiter = ',') {
  const auto file = MemoryFile("t.csv", text);
  CsvRows rows(file.get(), delimiter);
  Result result;
  std::vector<absl::string_view> fields;
  while (true) {
    const absl::StatusOr<bool> more = rows.Next(&fields);
    if (!more.ok()) result.error = std::string(more.status().message());
    if (!more.ok() || !*more) return result;
    Row row;
    for (absl::string_view field : fields) row.emplace_back(field);
    result.rows.push_back(row);
    result.lines.push_back(rows.line());
  }
}

TEST(CsvRowsTest, SplitsAtDelimitersAndLineEndsOfBothKinds) {
  const Result result = ReadRows("a,b,c\r\n1,,3\n,,\n4,5,6");
  EXPECT_THAT(result.rows, ElementsAre(Row{"a", "b", "c"}, Row{"1", "", "3"},
                                       Row{"", "", ""}, Row{"4", "5", "6"}));
  EXPECT_THAT(result.lines, ElementsAre(1, 2, 3, 4));
}

TEST(CsvRowsTest, QuotedFieldsHoldDelimitersLineEndsAndQuotes) {
  const Result result =
      ReadRows("\"a,b\",\"line\r\nbreak\"\n\"say \"\"hi\"\"\",\"\"\nx,y\n");
  EXPECT_THAT(result.rows, ElementsAre(Row{"a,b", "line\r\nbreak"},
                                       Row{"say \"hi\"", ""}, Row{"x", "y"}));
  EXPECT_THAT(result.lines, ElementsAre(1, 3, 4));
}

TEST(CsvRowsTest, EmptyLinesAndAByteOrderMarkAreSkipped) {
  const Result result = ReadRows("\xEF\xBB\xBF\"a\",b\n\n\r\n1,2\n\n");
  EXPECT_THAT(result.rows, ElementsAre(Row{"a", "b"}, Row{"1", "2"}));
  EXPECT_THAT(result.lines, ElementsAre(1, 4));
}

TEST(CsvRowsTest, ByteOrderMarksAreSkippedHoweverMany) {
  EXPECT_THAT(ReadRows("\xEF\xBB\xBF\xEF\xBB\xBF"
                       "a,b\n")
                  .rows,
              ElementsAre(Row{"a", "b"}));
  EXPECT_THAT(ReadRows("\xEF\xBB\xBF\r\na\n").rows, ElementsAre(Row{"a"}));
}

TEST(CsvRowsTest, ACarriageReturnWithinARowIsTold) {
  const auto error = [](int line) {
    return HasSubstr("t.csv: line " + std::to_string(line) +
                     ": a carriage return within a row");
  };
  EXPECT_THAT(ReadRows("a,b\r1,2\r").error, error(1));
  EXPECT_THAT(ReadRows("a,b\n1,2\r3,4\n").error, error(2));
  EXPECT_THAT(ReadRows("a,b\r\r\n").error, error(1));
  EXPECT_THAT(ReadRows("a,\"b\"\r\r\n").error, error(1));
  EXPECT_THAT(ReadRows(std::string(20 << 20, 'x') + "\ra").error,
              HasSubstr("line 1: a row of more than 16 MiB"));
  EXPECT_THAT(ReadRows("a\r" + std::string(20 << 20, 'x')).error, error(1));
  EXPECT_THAT(ReadRows("\"a\rb\",c\n").rows, ElementsAre(Row{"a\rb", "c"}));
}

TEST(CsvRowsTest, TabsDelimitAsWell) {
  EXPECT_THAT(ReadRows("a,b\tc\n", '\t').rows, ElementsAre(Row{"a,b", "c"}));
}

TEST(CsvRowsTest, ADelimiterAtTheEndIsAnEmptyField) {
  EXPECT_THAT(ReadRows("a,\n,").rows, ElementsAre(Row{"a", ""}, Row{"", ""}));
}

TEST(CsvRowsTest, MisplacedQuotesAreToldWithTheirLine) {
  EXPECT_EQ(ReadRows("a,b\nc,d\"e\"\n").error,
            "t.csv: line 2: a quote within a field that does not begin with "
            "one");
  EXPECT_THAT(ReadRows("\"a\"b,c\"\n").error,
              HasSubstr("line 1: a quote is followed by neither"));
  const Result open = ReadRows("a,b\nc,\"d\ne,f\ng,h\n");
  EXPECT_EQ(open.rows.size(), 1u);
  EXPECT_EQ(open.error,
            "t.csv: line 2: a quote is opened here and never closed");
}

TEST(CsvRowsTest, ARowWithoutEndIsRefusedBeforeItFillsTheMemory) {
  EXPECT_THAT(ReadRows(Gzip("a,\"" + std::string(20 << 20, '\n'))).error,
              HasSubstr("line 1: a row of more than 16 MiB"));
  EXPECT_THAT(ReadRows(std::string(20 << 20, 'x')).error,
              HasSubstr("line 1: a row of more than 16 MiB"));
}

TEST(CsvRowsTest, RowsAcrossPiecesOfInputAreWhole) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i) + ",\"x,y\"\n";
  const Result result = ReadRows(text);
  ASSERT_EQ(result.rows.size(), 100000u);
  for (int i = 0; i < 100000; ++i) {
    ASSERT_EQ(result.rows[i], (Row{std::to_string(i), "x,y"}));
  }
}

TEST(CsvRowsTest, ACutGzipFileIsToldAndNotTakenForTheEnd) {
  const std::string packed = Gzip("a,b\n1,2\n");
  EXPECT_THAT(ReadRows(packed.substr(0, packed.size() - 1)).error,
              HasSubstr("t.csv: the gzip data is cut off"));
}

}  // namespace
}  // namespace tributary
