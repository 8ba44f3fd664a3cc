// SPDX-License-Identifier: Apache-2.0
// The settings and commands in messages about tables work: they are pasted into
// the job file or into a shell, and the table is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "worker/train/check/check_data.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A table, and a job of a linear layer for it.
struct OddTable {
  std::string text;
  std::string columns = "label: y";
  std::string csv = "";  // further lines
  int width = 1;
  int classes = 0;  // 0: the job predicts numbers
  std::string path = "t.csv";
};

class TableHintsTest : public testing::TemporaryFolderTest {
 protected:
  // The error of the job with `pasted` below csv; empty if the job is fine.
  std::string ErrorOfJob(const OddTable& table,
                         const std::string& pasted = "") {
    const bool ignore = pasted.rfind("ignore", 0) == 0;
    Write(
        "job.yaml",
        absl::StrCat("model:\n  sequential:\n    - linear: {in: ", table.width,
                     ", out: ", table.classes == 0 ? 1 : table.classes,
                     "}\ndata:\n  train:\n    csv:\n      path: ", table.path,
                     "\n      ", ignore ? "" : pasted, "\n      ", table.csv,
                     "\n      columns:\n        ", table.columns, "\n        ",
                     ignore ? pasted : "",
                     "\n  batch_size: 1\ntraining:\n  steps: 1\n  loss: ",
                     table.classes == 0 ? "mse" : "cross_entropy",
                     "\n  optimizer: {sgd: {learning_rate: 1}}\n"));
    return std::string(
        CheckDataOfFile(Path("job.yaml"), {}).status().message());
  }

  // Pastes each setting that the message about the table offers. Returns the
  // keys of the settings.
  std::vector<std::string> PasteEach(const OddTable& table) {
    Write(table.path, table.text);
    const std::string error = ErrorOfJob(table);
    EXPECT_THAT(error, StartsWith(Path("job.yaml") + ":"));
    const std::regex setting(
        R"re(\b(\w+): (\{[^}]*\}|\[[^\]]*\]|"[^"]*"|true|false|mean|skip)(; |, and |$))re");
    std::vector<std::string> keys;
    for (std::sregex_iterator at(error.begin(), error.end(), setting), end;
         at != end; ++at) {
      keys.push_back((*at)[1]);
      EXPECT_EQ(
          ErrorOfJob(table, absl::StrCat((*at)[1].str(), ": ", (*at)[2].str())),
          "")
          << error;
    }
    return keys;
  }

  // Runs the command that the message offers, and reads what it wrote. It
  // leaves other files alone.
  void RunCommand(OddTable table, const std::string& result) {
    Write(table.path, table.text);
    const std::string error = ErrorOfJob(table);
    const size_t at = error.find("as in: ");
    ASSERT_NE(at, std::string::npos) << error;
    ASSERT_EQ(std::system(error.substr(at + 7).c_str()), 0) << error;
    table.path = result;
    EXPECT_EQ(ErrorOfJob(table), "");
  }
};

TEST_F(TableHintsTest, AMissingNumberIsFilled) {
  for (const char* word : {"",     "?",    "nan", "NaN",    "null", "NULL", "~",
                           "None", "none", "NA",  "N/A",    "#N/A", "<NA>", "-",
                           "--",   "\\N",  "inf", "(null)", "nil",  "."}) {
    const std::vector<std::string> keys =
        PasteEach({.text = absl::StrCat("a,y\n1,1\n", word, ",2\n4,3\n")});
    if (std::string(word) != "~") {
      EXPECT_THAT(keys, ElementsAre("missing")) << word;
    }
  }
}

TEST_F(TableHintsTest, AnotherMissingNumberIsFilledLikeTheFirst) {
  for (const char* missing :
       {"missing: mean", "missing: {median: true, texts: [NA]}",
        "missing: skip", "missing: {constant: 0.1, texts: ['-9']}"}) {
    OddTable table = {.text = "a,y\n1,1\nNA,1\n-9,2\nnull,3\n4,3\n",
                      .csv = missing};
    Write(table.path, table.text);
    // One word after the other, each with the setting so far.
    for (int words = 0; words < 3; ++words) {
      const std::string error = ErrorOfJob(table);
      const std::smatch found = [&error] {
        std::smatch match;
        std::regex_search(error, match, std::regex(R"(missing: \{.*\})"));
        return match;
      }();
      if (found.empty()) break;
      table.csv = found.str();
    }
    EXPECT_EQ(ErrorOfJob(table), "") << missing;
  }
}

TEST_F(TableHintsTest, AMissingLabelIsLeftOutOrAClass) {
  for (const char* word : {"nan", "null", "NA", "-", "\\N", "none", "inf"}) {
    const std::string row = absl::StrCat("9,", word, "\n");
    EXPECT_THAT(PasteEach({.text = "a,y\n1,0\n2,1\n3,2\n" + row, .classes = 4}),
                ElementsAre("missing", "classes"))
        << word;
    EXPECT_THAT(PasteEach({.text = "a,y\n1,0\n2,1\n" + row}),
                ElementsAre("missing"))
        << word;
  }
  EXPECT_THAT(PasteEach({.text = "a,y\n1,0\n2,?\n", .classes = 2}),
              ElementsAre("missing"));
}

TEST_F(TableHintsTest, TheDelimiterIsSet) {
  for (const char* delimiter : {";", "\t", "|", " "}) {
    const auto row = [delimiter](const char* a, const char* b, const char* y) {
      return absl::StrCat(a, delimiter, b, delimiter, y, "\n");
    };
    EXPECT_THAT(PasteEach({.text = row("a", "b", "y") + row("1", "2", "3"),
                           .width = 2}),
                ElementsAre("delimiter"));
  }
  EXPECT_THAT(
      PasteEach({.text = "a,b,y\n1,2,3\n", .width = 2, .path = "t.tsv"}),
      ElementsAre("delimiter"));
}

TEST_F(TableHintsTest, AFirstRowOfDataIsReadOrNamesTheColumns) {
  EXPECT_THAT(
      PasteEach(
          {.text = "1,2,3\n4,5,6\n7,8,9\n", .columns = "label: 2", .width = 2}),
      ElementsAre("header", "header"));
  EXPECT_THAT(PasteEach({.text = "5.1,3.5,0\n4.9,3.0,1\n",
                         .columns = "label: 2",
                         .width = 2,
                         .classes = 2}),
              ElementsAre("header", "header"));
}

TEST_F(TableHintsTest, AColumnWithoutANameIsIgnored) {
  EXPECT_THAT(PasteEach({.text = ",a,y\n0,1,2\n1,2,3\n"}),
              ElementsAre("ignore"));
  EXPECT_THAT(PasteEach({.text = "Unnamed: 0,a,y,\n0,1,2,\n1,2,3,\n"}),
              ElementsAre("ignore"));
}

TEST_F(TableHintsTest, ACommandConvertsTheFile) {
  const std::string table = "a,y\n1,2\n3,4\n";
  std::string wide = "\xFF\xFE";
  for (const char c : table) wide.append({c, '\0'});
  RunCommand({.text = wide}, "new-t.csv");
  RunCommand({.text = wide.substr(2), .path = "it's a table.csv"},
             "new-it's a table.csv");
  RunCommand({.text = "a,y\r1,2\r3,4\r"}, "new-new-t.csv");
  RunCommand({.text = "gr\xF6\xDF"
                      "e,y\n1,2\n",
              .columns = "{label: y, numeric: größe}"},
             "new-new-new-t.csv");
}

TEST_F(TableHintsTest, ATestSetWithColumnsInAnotherOrder) {
  OddTable table = {.text = "a,b,y\n1,2,3\n",
                    .columns = "label: y\n  test: {csv: {path: test.csv}}",
                    .width = 2};
  Write(table.path, table.text);
  Write("test.csv", "b,a,y\n2,1,3\n");
  const std::string error = ErrorOfJob(table);
  EXPECT_THAT(error,
              HasSubstr("column 0 (\"b\"): wanted \"a\" at this position"));
  const size_t at = error.find("as in columns: {");
  ASSERT_NE(at, std::string::npos) << error;
  const std::string names = error.substr(at + 16, error.rfind('}') - at - 16);
  table.columns =
      absl::StrCat("{", names, "}\n  test: {csv: {path: test.csv}}");
  EXPECT_EQ(ErrorOfJob(table), "");
}

// A message about a column leads to the line that names it.
TEST_F(TableHintsTest, ANameInAHintIsNotTheNameInTheJob) {
  const OddTable table = {.text = "a,label\n1,2\n",
                          .columns = "label: label\n        numeric: lable"};
  Write(table.path, table.text);
  EXPECT_THAT(ErrorOfJob(table), StartsWith(Path("job.yaml") + ":12: "));
  const OddTable text = {.text = "a,b,y\n1,y,2\n", .width = 2};
  Write(text.path, text.text);
  EXPECT_THAT(ErrorOfJob(text), HasSubstr("line 2: column 1 (\"b\"): wanted a "
                                          "number, got \"y\""));
  EXPECT_THAT(ErrorOfJob(text), StartsWith(Path("job.yaml") + ":6: "));
}

}  // namespace
}  // namespace tributary
