// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_header.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/readers/csv/csv_reader.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CsvHeaderTest, NumbersDatesAndTimesLookNumeric) {
  for (const char* text :
       {"1", "-2.5", " 3 ", "1e-3", "2020-01-31", "31.1.2020", "1/2/20",
        "12:30:05", "2020-01-31T12:30:05Z", "1,5", "1.234,5", "+7", "12 %"}) {
    EXPECT_TRUE(LooksNumeric(text)) << text;
  }
  for (const char* text :
       {"", "a", "x1", "1st", "E5", "e", "-", "2019_a", "T", "nan", "0x10"}) {
    EXPECT_FALSE(LooksNumeric(text)) << text;
  }
}

// Columns by number, and a header that may be doubted.
absl::StatusOr<RawData> ReadDoubtful(const std::string& text,
                                     const CsvColumnNames& columns,
                                     TargetKind kind = TargetKind::kClass) {
  CsvOptions options;
  options.columns = columns;
  options.doubt_header = true;
  CsvWords words;
  return ReadTrainingCsv(InputFiles::OverBytes("t.csv", text), options, kind,
                         &words);
}

struct Headerless {
  const char* text;
  CsvColumnNames columns;
  const char* data;  // the value in the first row that is data
};

TEST(CsvHeaderTest, AFirstRowOfDataIsRefused) {
  const char* looks = ", which looks like data";
  for (const Headerless& one : std::vector<Headerless>{
           {"1,2,3\n4,5,6\n7,8,9\n", {"2", {}, {}, {}}, "1"},
           {"5.1,3.5,0\n4.9,3.0,1\n", {"2", {}, {}, {}}, "5.1"},
           {"5.1,3.5,setosa\n4.9,3.0,setosa\n", {"2", {}, {}, {}}, "5.1"},
           {"T,2,8\nI,5,12\n", {"0", {}, {}, {}}, "2"},
           {"2020-01-01,a\n2020-01-02,b\n", {"1", {}, {"0"}, {}}, "2020-01-01"},
           {"?,smith,yes\nx,baker,no\n", {"2", {}, {"0-1"}, {}}, "?"},
           {"NA,smith,yes\n1,baker,no\n", {"2", {}, {"0-1"}, {}}, "NA"},
           {"A/5,22,7.25,died\n175,38,71.3,lived\n",
            {"3", {"1", "2"}, {"0"}, {}},
            "22"},
           {"5.1,3.2,K\n4.9,3.1,1\n", {"2", {"0-1"}, {}, {}}, "5.1"},
           {"unknown,5.5,7.1\n3,4.5,2.1\n", {"2", {"0-1"}, {}, {}}, "5.5"},
           {"2019,2020,y\n5,6,0\n", {"2", {}, {}, {}}, "2019"},
           {"k,3,yes\n902,4,no\n", {"2", {"1"}, {}, {"0"}}, "3"},
           {"1,2,k\n5,6,902\n", {"2", {"1"}, {}, {}}, "1"},
           {"a1,0\na2,1\n", {"1", {}, {"0"}, {}}, "0"},
           {"p,x,s,p\ne,x,b,s\n", {"0", {}, {"1-3"}, {}}, "p"},
           {"12:30,up\n12:31,up\n", {"1", {}, {"0"}, {}}, "12:30"}}) {
    EXPECT_THAT(ErrorOf(ReadDoubtful(one.text, one.columns)),
                HasSubstr("wanted a header with the names of the columns, got "
                          "\"" +
                          std::string(one.data) + "\"" + looks))
        << one.text;
  }
}

TEST(CsvHeaderTest, TheMessageSaysBothRemedies) {
  EXPECT_EQ(ErrorOf(ReadDoubtful("\n1,2\n3,4\n", {"1", {}, {}, {}})),
            "t.csv: line 2: wanted a header with the names of the columns, got "
            "\"1\", which looks like data; if the file has no header, set "
            "csv.header, as in header: false; if this row has the names, set "
            "header: true");
}

TEST(CsvHeaderTest, AWordThatIsAValueToo) {
  const std::string error =
      ErrorOf(ReadDoubtful("smith,Rome,yes\nbaker,Oslo,no\nsmith,Rome,no\n",
                           {"2", {}, {"0-1"}, {}}));
  EXPECT_THAT(error, StartsWith("t.csv: line 1: wanted a header"));
  EXPECT_THAT(error, HasSubstr("got \"smith\", which is a value of this column "
                               "in line 3; if the file has no header"));
  EXPECT_THAT(ErrorOf(ReadDoubtful("smith,no\nbaker,yes\nmiller,no\n",
                                   {"1", {}, {"0"}, {}})),
              HasSubstr("got \"no\", which is a value of this column"));
}

TEST(CsvHeaderTest, AnErrorAboutAColumnNamesTheMissingHeaderToo) {
  EXPECT_THAT(
      ErrorOf(ReadDoubtful("5.1,3.5,a\n4.9,3.0,b\n", {"species", {}, {}, {}})),
      HasSubstr("no column \"species\"; columns are 5.1, 3.5, a; wanted "
                "a header with the names of the columns, got \"5.1\", "
                "which looks like data; if the file has no header"));
  EXPECT_EQ(ErrorOf(ReadDoubtful("id,age,y\nx,5,1\n", {"z", {}, {}, {}})),
            "t.csv: columns.label: no column \"z\"; columns are id, age, y");
}

TEST(CsvHeaderTest, NamesOfColumnsAreBelieved) {
  for (const Headerless& one : std::vector<Headerless>{
           {"a,b,y\n1,2,0\n", {"2", {}, {}, {}}, "words above numbers"},
           {"name,2019,class\nBob,5,yes\n", {"class", {"2019"}, {}, {}}, "use"},
           {",job,label\n0,smith,yes\n", {"2", {}, {"1"}, {}}, "an index"},
           {"job,job,label\nsmith,x,yes\n", {"label", {}, {"0"}, {}}, "twice"},
           {"spam,len\nspam,5\nham,6\n", {"0", {"1"}, {}, {}}, "a class"},
           {"a,b,y\n?,,1\n", {"2", {}, {"0-1"}, {}}, "missing values below"}}) {
    const auto data = ReadDoubtful(one.text, one.columns);
    EXPECT_TRUE(data.ok()) << one.data << ": " << data.status();
  }
}

TEST(CsvHeaderTest, WithoutDoubtTheFirstRowIsTheHeader) {
  CsvOptions options;
  options.columns.label = "2";
  CsvWords words;
  const auto data =
      ReadTrainingCsv(InputFiles::OverBytes("t.csv", "1,2,3\n4,5,6\n7,8,9\n"),
                      options, TargetKind::kClass, &words);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(words.header, ElementsAre("1", "2", "3"));
  EXPECT_THAT(data->targets.labels, ElementsAre(5, 8));
}

TEST(CsvHeaderTest, TheHeaderAgainIsNoRow) {
  const CsvColumnNames columns = {"label", {}, {"job"}, {}};
  EXPECT_EQ(
      ErrorOf(ReadDoubtful("job,label\nsmith,yes\njob,label\nx,no\n", columns)),
      "t.csv: line 3: this is the header again; take the line out");
  const auto alike = ReadDoubtful("job,label\nsmith,label\njob,no\n", columns);
  EXPECT_TRUE(alike.ok()) << alike.status();
}

}  // namespace
}  // namespace tributary
