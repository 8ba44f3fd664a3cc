// SPDX-License-Identifier: Apache-2.0
// Labels of tables: which fields are not labels, and which classes a job names.
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
using Kind = CsvMissing::Kind;

class CsvLabelsTest : public ::testing::Test {
 protected:
  CsvLabelsTest() { options_.columns.label = "y"; }

  absl::StatusOr<RawData> ReadLabels(const std::vector<std::string>& labels,
                                     TargetKind kind = TargetKind::kClass) {
    std::string text = "a,y\n";
    for (const std::string& label : labels) text += "1," + label + "\n";
    return ReadTrainingCsv(InputFiles::OverBytes("t.csv", text), options_, kind,
                           &words_);
  }
  absl::StatusOr<RawData> ReadTestLabel(const std::string& label,
                                        TargetKind kind = TargetKind::kClass) {
    std::vector<std::string> warnings;
    return ReadTestCsv(
        InputFiles::OverBytes("test.csv", "a,y\n1," + label + "\n"), options_,
        kind, words_, &warnings);
  }

  CsvOptions options_;
  CsvWords words_;
};

constexpr const char* kNoLabels[] = {
    "",     "?",    "NaN",  "nan",   "-nan", "NA",   "N/A",  "n/a",
    "#N/A", "<NA>", "null", "NULL",  "nil",  "None", "NaT",  "\\N",
    "-",    "--",   ".",    " nan ", "  ",   "inf",  "-inf", "Infinity"};

TEST_F(CsvLabelsTest, AMissingLabelIsNoClass) {
  for (const CsvMissing& missing : std::vector<CsvMissing>{
           {}, {.kind = Kind::kMean}, {.kind = Kind::kSkip, .texts = {"-9"}}}) {
    options_.missing = missing;
    for (const std::string label : kNoLabels) {
      // An empty field and "?" are skipped without being named.
      const bool skipped =
          missing.kind == Kind::kSkip && MissingFields({"-9"}).Contains(label);
      for (const auto& [kind, others] :
           std::vector<std::pair<TargetKind, std::vector<std::string>>>{
               {TargetKind::kClass, {"0", "1"}},
               {TargetKind::kClass, {"cat", "dog"}},
               {TargetKind::kBinary, {"0", "1"}},
               {TargetKind::kBinary, {"yes", "yes"}},
               {TargetKind::kReal, {"0.5", "-1"}}}) {
        const auto data = ReadLabels({others[0], label, others[1]}, kind);
        if (skipped && others[0] != "yes") {
          EXPECT_TRUE(data.ok() && data->rows == 2) << label << data.status();
          continue;
        }
        if (skipped) continue;  // a single word is no pair
        EXPECT_THAT(
            ErrorOf(data),
            StartsWith("t.csv: line 3: column 1 (\"y\"): wanted a label, got"))
            << label;
      }
    }
  }
}

TEST_F(CsvLabelsTest, TheHintsLeaveOutTheRowOrMakeItAClass) {
  EXPECT_EQ(ErrorOf(ReadLabels({"2", "NaN", "10"})),
            "t.csv: line 3: column 1 (\"y\"): wanted a label, got \"NaN\"; to "
            "leave out such rows, set csv.missing, as in missing: {skip: true, "
            "texts: [\"NaN\"]}; if it is a class, name all classes in "
            "csv.classes, as in classes: [\"10\", \"2\", \"NaN\"]");
  EXPECT_THAT(ErrorOf(ReadLabels({"2", "?"})),
              HasSubstr("as in missing: skip"));
  EXPECT_THAT(ErrorOf(ReadLabels({"2", "NaN"}, TargetKind::kReal)),
              HasSubstr("as in missing: {skip: true, texts: [\"NaN\"]}"));
  options_.missing = {.kind = Kind::kMedian, .texts = {"-9"}};
  EXPECT_THAT(ErrorOf(ReadLabels({"2", "NaN", "10"})),
              HasSubstr("as in missing: {skip: true, texts: [\"-9\", "
                        "\"NaN\"]}"));
  EXPECT_THAT(ErrorOf(ReadLabels({"2", "-9"})),
              HasSubstr("as in missing: {skip: true, texts: [\"-9\"]}"));
}

TEST_F(CsvLabelsTest, AMissingLabelOfATestSetIsToldToo) {
  ASSERT_TRUE(ReadLabels({"cat", "dog"}).ok());
  EXPECT_THAT(ErrorOf(ReadTestLabel("NA")),
              StartsWith("test.csv: line 2: column 1 (\"y\"): wanted a label"));
}

TEST_F(CsvLabelsTest, NamedClassesAreLabelsWhateverTheyLookLike) {
  options_.classes = {"none", "?", "mild"};
  const auto data = ReadLabels({"none", "mild", "?", "none"});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->targets.class_names, ElementsAre("none", "?", "mild"));
  EXPECT_THAT(data->targets.labels, ElementsAre(0, 2, 1, 0));
  EXPECT_TRUE(ReadTestLabel("none").ok());
  options_.missing.kind = Kind::kSkip;
  EXPECT_EQ(ReadLabels({"none", "", "?"})->rows, 2);
}

// Among words, "1" and "1.0" would be two classes.
TEST_F(CsvLabelsTest, ANumberThatIsSpelledInTwoWaysIsTold) {
  EXPECT_EQ(
      ErrorOf(ReadLabels({"1", "-1", "1.0"})),
      "t.csv: line 4: column 1 (\"y\"): wanted one spelling of a number, "
      "got \"1.0\", and \"1\" in line 2; if they are two classes, name all "
      "classes in csv.classes");
  EXPECT_TRUE(ReadLabels({"1", "0", "1.0"}).ok());
  options_.classes = {"1", "-1", "1.0"};
  EXPECT_TRUE(ReadLabels({"1", "-1", "1.0"}).ok());
}

TEST_F(CsvLabelsTest, NamedClassesKeepTheirOrder) {
  options_.classes = {"low", "mid", "high"};
  const auto data = ReadLabels({"high", "low", "mid"});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->targets.class_names, ElementsAre("low", "mid", "high"));
  EXPECT_THAT(data->targets.labels, ElementsAre(2, 0, 1));
  EXPECT_THAT(ReadTestLabel("mid")->targets.labels, ElementsAre(1));
  // The second of two is the positive one.
  options_.classes = {"yes", "no"};
  const auto binary = ReadLabels({"no", "yes"}, TargetKind::kBinary);
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_THAT(binary->targets.values, ElementsAre(1, 0));
  EXPECT_THAT(ReadTestLabel("no", TargetKind::kBinary)->targets.values,
              ElementsAre(1));
}

TEST_F(CsvLabelsTest, NamedClassesMakeWordsOfNumbers) {
  options_.classes = {"00501", "10001"};
  const auto data = ReadLabels({"10001", "00501"});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->targets.class_names, ElementsAre("00501", "10001"));
  EXPECT_THAT(data->targets.labels, ElementsAre(1, 0));
  const auto binary = ReadLabels({"10001", "00501"}, TargetKind::kBinary);
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_THAT(binary->targets.values, ElementsAre(1, 0));
}

TEST_F(CsvLabelsTest, ALabelThatIsNoNamedClassIsTold) {
  options_.classes = {"mild", "severe"};
  EXPECT_EQ(ErrorOf(ReadLabels({"mild", "sever"})),
            "t.csv: line 3: column 1 (\"y\"): wanted one of csv.classes, got "
            "\"sever\"");
  ASSERT_TRUE(ReadLabels({"mild"}).ok());
  EXPECT_TRUE(ReadTestLabel("severe").ok());
  EXPECT_THAT(ErrorOf(ReadTestLabel("sever")),
              HasSubstr("wanted one of csv.classes"));
}

}  // namespace
}  // namespace tributary
