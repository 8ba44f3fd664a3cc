// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl as a successor reads it, whole and damaged.
#include "coordinator/run/metrics_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/run/run_directory.h"
#include "coordinator/run/run_record.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

StepRecord StepOfRun(int64_t step) {
  StepRecord record;
  record.step = step;
  record.epoch = 1 + step / 10;
  record.loss = 1.0 / static_cast<double>(step);
  record.skipped = step % 3 == 2;
  record.learning_rate = 1e-5;
  record.samples = 4;
  record.samples_per_second = 8e6;
  record.seconds.step = 0.5;
  record.seconds.wait = 0.25;
  record.bytes_sent = 77;
  return record;
}

class MetricsFileTest : public testing::TemporaryFolderTest {
 protected:
  // Writes steps 1 to 9, with totals after step 6.
  void Write9() {
    MetricsFile file = MetricsFile::Create(folder()).value();
    for (int64_t step = 1; step <= 9; ++step) {
      file.Add(StepOfRun(step));
      ASSERT_TRUE(file.Flush().ok());
      if (step != 6) continue;
      v1::StepsShown shown;
      shown.set_width(6);
      ASSERT_TRUE(file.SaveTotals(shown).ok());
    }
  }
  std::string Metrics() const { return Read("metrics.jsonl"); }
  // The bytes of the first lines.
  static size_t EndOf(const std::string& lines, int count) {
    size_t end = 0;
    for (int i = 0; i < count; ++i) end = lines.find('\n', end) + 1;
    return end;
  }
  void Remove(const std::string& name) {
    std::filesystem::remove(folder() + "/" + name);
  }
  MetricsFile Open() {
    read_.clear();
    widths_.clear();
    return MetricsFile::Open(folder(),
                             {.on_shown =
                                  [this](const v1::StepsShown& shown) {
                                    widths_.push_back(shown.width());
                                  },
                              .on_step =
                                  [this](const StepRecord& record) {
                                    read_.push_back(record.step);
                                  }})
        .value();
  }
  static void ExpectAllNine(const MetricsFile& file) {
    const RecordedSteps recorded = file.Recorded();
    EXPECT_EQ(recorded.step, 9);
    EXPECT_EQ(recorded.epoch, 1);
    EXPECT_EQ(recorded.loss, 1.0 / 9);
    EXPECT_EQ(recorded.samples, 36u);
    EXPECT_EQ(recorded.training_seconds, 4.5);
    EXPECT_EQ(recorded.skipped_steps, 3);
  }

  std::vector<int64_t> read_, widths_;
};

TEST_F(MetricsFileTest, OnlyTheLinesAfterTheTotalsAreRead) {
  Write9();
  const MetricsFile file = Open();
  ExpectAllNine(file);
  EXPECT_THAT(read_, ElementsAre(7, 8, 9));
  EXPECT_THAT(widths_, ElementsAre(6));
  EXPECT_EQ(file.bad_lines().count, 0);
}

TEST_F(MetricsFileTest, TotalsGoOnAfterTheEarlierOnes) {
  Write9();
  {
    MetricsFile file = Open();
    ASSERT_TRUE(file.SaveTotals({}).ok());
    file.Add(StepOfRun(10));
    ASSERT_TRUE(file.Flush().ok());
  }
  const MetricsFile file = Open();
  EXPECT_THAT(read_, ElementsAre(10));
  EXPECT_EQ(file.Recorded().samples, 40u);
}

TEST_F(MetricsFileTest, TotalsThatCannotBeReadAreDoneWithout) {
  Write9();
  const std::string totals = Read("coordinator.totals");
  for (size_t byte = 0; byte < totals.size(); ++byte) {
    std::string damaged = totals;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 4);
    Write("coordinator.totals", damaged);
    ExpectAllNine(Open());
    EXPECT_EQ(read_.size(), 9u);
    EXPECT_THAT(widths_, IsEmpty());
  }
  Remove("coordinator.totals");
  ExpectAllNine(Open());
}

// The totals know what the lines no longer say.
TEST_F(MetricsFileTest, LinesThatTheTotalsSumUpMayBeLost) {
  Write9();
  const std::string lines = Metrics();
  const auto end_of = [&lines](int line) { return EndOf(lines, line); };
  Write("metrics.jsonl", lines.substr(0, end_of(4)));
  MetricsFile file = Open();
  EXPECT_EQ(file.Recorded().step, 6);
  EXPECT_EQ(file.Recorded().samples, 24u);
  // Zeros in the place of lines 5 to 7 with their ends: line 8 has no
  // beginning.
  Write("metrics.jsonl", lines.substr(0, end_of(4)) +
                             std::string(end_of(7) - end_of(4), '\0') +
                             lines.substr(end_of(7)));
  file = Open();
  EXPECT_EQ(file.Recorded().step, 9);
  EXPECT_EQ(file.Recorded().samples, 28u) << "all but steps 7 and 8";
  EXPECT_EQ(file.bad_lines().count, 1);
  Remove("metrics.jsonl");
  EXPECT_EQ(Open().Recorded().step, 6);
}

// The file is shorter than the totals say, then as long, with other lines.
TEST_F(MetricsFileTest, LinesThatFollowLostOnesAreRead) {
  Write9();
  const std::string lines = Metrics();
  Write("metrics.jsonl", lines.substr(0, EndOf(lines, 4)));
  for (const int64_t step : {7, 8}) {
    MetricsFile file = Open();
    file.Add(StepOfRun(step));
    ASSERT_TRUE(file.Flush().ok());
    // The file is lost before it writes new totals.
  }
  ASSERT_GT(Metrics().size(), EndOf(lines, 6));
  const MetricsFile file = Open();
  EXPECT_THAT(read_, ElementsAre(7, 8));
  EXPECT_EQ(file.bad_lines().count, 0);
  EXPECT_EQ(file.Recorded().step, 8);
  EXPECT_EQ(file.Recorded().samples, 32u);
}

TEST_F(MetricsFileTest, BadLinesAreLeftOutAndCounted) {
  Write9();
  Remove("coordinator.totals");
  const std::string lines = Metrics();
  const size_t third = lines.find("{\"step\":3");
  std::string damaged = lines;
  damaged[third + 2] = 'S';
  Write("metrics.jsonl", damaged);
  MetricsFile file = Open();
  EXPECT_THAT(read_, ElementsAre(1, 2, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(file.bad_lines().count, 1);
  EXPECT_EQ(file.bad_lines().first_byte, third);
  EXPECT_EQ(
      file.bad_lines().Text("f"),
      absl::StrCat("f: skipped 1 line that cannot be read, at byte ", third));
  const std::string bad[] = {"",
                             "no JSON",
                             "[1]",
                             "{\"loss\":1}",
                             "{\"step\":null}",
                             "{\"step\":-3}",
                             "{\"step\":1e99}",
                             "{\"step\":99999999999999999999}",
                             std::string(100, '\0'),
                             std::string(3 << 20, 'x')};
  for (const std::string& line : bad) {
    Write("metrics.jsonl", line + "\n" + lines + line + "\n");
    file = Open();
    ExpectAllNine(file);
    EXPECT_EQ(file.bad_lines().count, 2) << line.substr(0, 80);
    EXPECT_EQ(file.bad_lines().first_byte, 0u);
  }
  EXPECT_THAT(file.bad_lines().Text("f"),
              HasSubstr("2 lines that cannot be read, the first at byte 0"));
}

// A power cut leaves such a file on some file systems.
TEST_F(MetricsFileTest, WhatFollowsTheLastLineIsCutOffHoweverMuchItIs) {
  Write9();
  const std::string lines = Metrics();
  for (const size_t bytes : {size_t{1}, size_t{200'000}, size_t{3} << 20}) {
    Write("metrics.jsonl", lines + std::string(bytes, '\0'));
    ExpectAllNine(Open());
    EXPECT_EQ(Metrics(), lines);
  }
  Write("metrics.jsonl", std::string(200'000, '\0'));
  EXPECT_EQ(Open().Recorded().step, 6);
  EXPECT_EQ(Metrics(), "");
}

TEST_F(MetricsFileTest, ALossThatNobodyReportsIsNone) {
  StepRecord record = StepOfRun(1);
  record.loss.reset();
  {
    MetricsFile file = MetricsFile::Create(folder()).value();
    file.Add(record);
    EXPECT_EQ(file.Recorded().loss, std::nullopt);
    ASSERT_TRUE(file.Flush().ok());
    ASSERT_TRUE(file.SaveTotals({}).ok());
  }
  EXPECT_EQ(Open().Recorded().loss, std::nullopt);
  Remove("coordinator.totals");
  EXPECT_EQ(Open().Recorded().loss, std::nullopt);
}

TEST(MetricsLineTest, TheQuickReaderReadsWhatAParserReads) {
  StepRecord record = StepOfRun(12345);
  std::vector<StepRecord> records = {record};
  record.loss = 1e300;
  record.skipped = true;
  record.learning_rate = 0;
  record.seconds.idle = 1.0 / 3;
  records.push_back(record);
  record.loss = std::numeric_limits<double>::quiet_NaN();
  records.push_back(record);
  record.skipped = false;
  records.push_back(record);
  EXPECT_THAT(MetricsLine(record), Not(HasSubstr("skipped")));
  EXPECT_THAT(MetricsLine(record), Not(HasSubstr("no_loss")));
  record.loss.reset();
  records.push_back(record);
  EXPECT_THAT(MetricsLine(record), HasSubstr(",\"loss\":null,"));
  EXPECT_THAT(MetricsLine(record), Not(HasSubstr("lost_reports")));
  record.lost_reports = 2;
  EXPECT_THAT(MetricsLine(record), EndsWith(",\"lost_reports\":2}"));
  for (const StepRecord& one : records) {
    const std::string line = MetricsLine(one);
    // With an additional space, the line is unlike the lines that are written.
    const auto quick = ReadMetricsLine(line);
    const auto parsed = ReadMetricsLine(" " + line);
    ASSERT_TRUE(quick.has_value() && parsed.has_value());
    for (const StepRecord& read : {*quick, *parsed}) {
      EXPECT_EQ(read.loss.has_value(), one.loss.has_value());
      EXPECT_EQ(std::isnan(read.loss.value_or(0)),
                std::isnan(one.loss.value_or(0)));
      if (!std::isnan(one.loss.value_or(0))) {
        EXPECT_EQ(read.loss, one.loss);
      }
    }
    StepRecord same = one;
    same.peer_seconds = 0;
    same.bytes_sent = same.bytes_received = 0;
    EXPECT_EQ(MetricsLine(*quick), MetricsLine(*parsed));
    EXPECT_EQ(MetricsLine(*quick), MetricsLine(same));
  }
}

}  // namespace
}  // namespace tributary
