// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "common/base/limits.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using Reports = google::protobuf::RepeatedPtrField<v1::StepReport>;

v1::StepReport Report(int64_t step, double loss_sum, uint64_t samples,
                      double seconds = 0.1) {
  v1::StepReport report;
  report.set_step(step);
  report.set_epoch(1 + (step - 1) / 10);
  report.set_loss_sum(loss_sum);
  report.set_samples(samples);
  report.set_learning_rate(0.5);
  report.set_step_seconds(seconds);
  return report;
}

Reports List(std::initializer_list<v1::StepReport> reports) {
  return Reports(reports.begin(), reports.end());
}

TEST(ProgressTest, AStartThatIsNoStepIsRefused) {
  Progress progress(2);
  ASSERT_TRUE(progress.Add(0, List({Report(1, 1.0, 1)})).ok());
  for (int64_t step : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    EXPECT_EQ(progress.StartAt(0, step).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(progress.last_step(0), 1);
}

TEST(ProgressTest, LossIsTheMeanOverTheGlobalBatch) {
  Progress progress(2);
  ASSERT_EQ(*progress.Add(0, List({Report(1, 6.0, 3)})), 1u);
  ASSERT_EQ(*progress.Add(1, List({Report(1, 2.0, 1)})), 1u);
  const auto records = progress.Take();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].loss, 2.0);  // (6 + 2) / (3 + 1)
  EXPECT_EQ(records[0].samples, 4u);
}

TEST(ProgressTest, ALostReportIsCountedAndStandsForNothing) {
  Progress progress(2);
  ASSERT_TRUE(progress.Add(0, List({Report(1, 6.0, 3)})).ok());
  ASSERT_TRUE(progress.Add(1, List({Report(1, 2.0, 1)})).ok());
  ASSERT_TRUE(progress.Add(0, List({Report(2, 9.0, 3)})).ok());
  ASSERT_TRUE(progress.StartAt(1, 3).ok());  // has computed steps 2 and 3
  ASSERT_TRUE(progress.StartAt(0, 3).ok());
  const auto records = progress.Take();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].lost_reports, 0u);
  EXPECT_EQ(records[1].lost_reports, 1u);
  EXPECT_EQ(records[1].loss, 3.0);
  EXPECT_EQ(records[2].lost_reports, 2u);
  EXPECT_EQ(records[2].loss, std::nullopt);
  EXPECT_EQ(records[2].samples, 0u);
  EXPECT_EQ(records[2].epoch, 1);
  EXPECT_EQ(progress.latest().loss, 3.0) << "the newest known one";
}

TEST(ProgressTest, ALossIsOfTheRanksThatReportOne) {
  Progress progress(2);
  v1::StepReport without = Report(1, 0, 5);
  without.set_no_loss(true);
  ASSERT_TRUE(progress.Add(0, List({without})).ok());
  ASSERT_TRUE(progress.Add(1, List({without})).ok());
  EXPECT_EQ(progress.latest().loss, std::nullopt);
  without.set_step(2);
  ASSERT_TRUE(progress.Add(0, List({without})).ok());
  ASSERT_TRUE(progress.Add(1, List({Report(2, 6.0, 3)})).ok());
  without.set_step(3);
  ASSERT_TRUE(progress.Add(0, List({without})).ok());
  ASSERT_TRUE(progress.Add(1, List({without})).ok());
  const auto records = progress.Take();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].loss, std::nullopt);
  EXPECT_EQ(records[0].samples, 10u);
  EXPECT_EQ(records[1].loss, 2.0);
  EXPECT_EQ(records[1].samples, 8u);
  EXPECT_EQ(records[2].loss, std::nullopt);
  EXPECT_EQ(progress.latest().loss, 2.0) << "the newest known one";
}

// After a power cut without a line of metrics.jsonl.
TEST(ProgressTest, AStepOfWhichNothingIsKnownIsOfTheFirstEpoch) {
  Progress progress(1);
  ASSERT_TRUE(progress.StartAt(0, 1).ok());
  const auto records = progress.Take();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].epoch, 1);
}

TEST(ProgressTest, AStepIsSkippedIfARankSaysSo) {
  Progress progress(2);
  v1::StepReport skipped = Report(2, 1, 1);
  skipped.set_skipped(true);
  ASSERT_TRUE(progress.Add(0, List({Report(1, 1, 1), Report(2, 1, 1)})).ok());
  ASSERT_TRUE(progress.Add(1, List({Report(1, 1, 1), skipped})).ok());
  const auto records = progress.Take();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records[0].skipped);
  EXPECT_TRUE(records[1].skipped);
}

TEST(ProgressTest, SkippedStepsCountOnceAndAfterThoseThatAreKnown) {
  Progress progress(1, /*start_step=*/10, /*skipped_steps=*/2);
  progress.Continue({.step = 12, .skipped_steps = 1});
  Reports reports = List({Report(13, 1, 1), Report(14, 1, 1)});
  for (v1::StepReport& report : reports) report.set_skipped(true);
  ASSERT_TRUE(progress.Add(0, reports).ok());
  ASSERT_TRUE(progress.Add(0, reports).ok()) << "again, after a rollback";
  EXPECT_EQ(progress.skipped_steps().count(), 5);
  EXPECT_EQ(progress.skipped_steps().CountUpTo(13), 4);
  EXPECT_EQ(progress.TakeNotices().size(), 1u);
}

TEST(ProgressTest, TimesAreMeansOverTheRanksSoThatPartsAddUp) {
  Progress progress(2);
  v1::StepReport fast = Report(1, 1, 1, 0.30);
  fast.set_compute_seconds(0.1);
  fast.set_wait_seconds(0.2);
  v1::StepReport slow = Report(1, 1, 1, 0.36);
  slow.set_compute_seconds(0.3);
  slow.set_push_seconds(0.02);
  slow.set_data_seconds(0.04);
  progress.Add(0, List({fast})).value();
  progress.Add(1, List({slow})).value();
  const StepRecord record = progress.Take().at(0);
  EXPECT_DOUBLE_EQ(record.seconds.step, 0.33);
  EXPECT_DOUBLE_EQ(record.seconds.compute, 0.2);
  EXPECT_DOUBLE_EQ(record.seconds.wait, 0.1);
  EXPECT_DOUBLE_EQ(record.seconds.push, 0.01);
  EXPECT_DOUBLE_EQ(record.seconds.data, 0.02);
}

TEST(ProgressTest, WaitBeyondTheLeastIsForSlowerRanks) {
  Progress progress(3);
  for (const auto& [rank, wait] : {std::pair{0, 0.5}, {1, 0.2}, {2, 0.8}}) {
    v1::StepReport report = Report(1, 1, 1, 1.0);
    report.set_wait_seconds(wait);
    report.set_bytes_sent(10);
    report.set_bytes_received(20);
    progress.Add(rank, List({report})).value();
  }
  const StepRecord record = progress.Take().at(0);
  EXPECT_DOUBLE_EQ(record.seconds.wait, 0.5);
  EXPECT_DOUBLE_EQ(record.peer_seconds, 0.3);  // 0.5 - 0.2
  EXPECT_EQ(record.bytes_sent, 30u);
  EXPECT_EQ(record.bytes_received, 60u);
}

TEST(ProgressTest, SpansAreKeptOfStepsThatAreDrawn) {
  Progress progress(2, /*start_step=*/63);
  for (uint32_t rank : {0, 1}) {
    Reports reports = List({Report(64, 1, 1), Report(65, 1, 1)});
    for (v1::StepReport& report : reports) report.add_spans();
    progress.Add(rank, reports).value();
  }
  const auto records = progress.Take();
  ASSERT_EQ(records.size(), 2u);
  ASSERT_EQ(records[0].ranks.size(), 2u);
  EXPECT_EQ(records[0].ranks[1].spans_size(), 1);
  EXPECT_TRUE(records[1].ranks.empty()) << "65 is not drawn";
  EXPECT_TRUE(progress.latest().ranks.empty());
}

TEST(ProgressTest, MoreSpansThanAWorkerSendsAreRefused) {
  Progress progress(1);
  Reports reports = List({Report(1, 1, 1)});
  for (int i = 0; i < 513; ++i) reports[0].add_spans();
  const auto refused = progress.Add(0, reports);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("513 spans"));
  reports[0].mutable_spans()->RemoveLast();
  EXPECT_TRUE(progress.Add(0, reports).ok());
}

TEST(ProgressTest, RecordsComeInStepOrderHoweverRanksRunApart) {
  Progress progress(3);
  progress.Add(2, List({Report(1, 1, 1), Report(2, 1, 1), Report(3, 1, 1)}))
      .value();
  progress.Add(0, List({Report(1, 1, 1)})).value();
  EXPECT_TRUE(progress.Take().empty());
  progress.Add(1, List({Report(1, 1, 1), Report(2, 1, 1)})).value();
  auto records = progress.Take();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].step, 1);
  progress.Add(0, List({Report(2, 1, 1), Report(3, 1, 1)})).value();
  progress.Add(1, List({Report(3, 1, 1)})).value();
  records = progress.Take();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].step, 2);
  EXPECT_EQ(records[1].step, 3);
  EXPECT_EQ(progress.merged_step(), 3);
}

TEST(ProgressTest, RepeatedReportsAreSettledAgainButCountOnce) {
  Progress progress(1);
  EXPECT_EQ(*progress.Add(0, List({Report(1, 1, 4), Report(2, 1, 4)})), 2u);
  EXPECT_EQ(*progress.Add(
                0, List({Report(1, 9, 9), Report(2, 9, 9), Report(3, 1, 4)})),
            3u);
  EXPECT_EQ(progress.Take().size(), 3u);
  EXPECT_EQ(progress.total_samples(), 12u);
}

TEST(ProgressTest, WhenNoMoreReportsComeTheFurthestRankTellsTheSteps) {
  Progress progress(2);
  ASSERT_TRUE(
      progress.Add(0, List({Report(1, 6, 3), Report(2, 9, 3), Report(3, 3, 3)}))
          .ok());
  ASSERT_TRUE(progress.Add(1, List({Report(1, 2, 1)})).ok());
  EXPECT_EQ(progress.merged_step(), 1);
  EXPECT_EQ(progress.furthest_step(), 3);
  progress.Close(2);
  const auto records = progress.Take();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].lost_reports, 0u);
  EXPECT_EQ(records[2].step, 3);
  EXPECT_EQ(records[2].lost_reports, 1u);
  EXPECT_DOUBLE_EQ(*records[2].loss, 1.0);  // of rank 0
  EXPECT_EQ(progress.merged_step(), 3);
  progress.Close(5);
  EXPECT_EQ(progress.Take().size(), 2u) << "steps that nobody has reported";
  EXPECT_EQ(progress.merged_step(), 5);
}

TEST(ProgressTest, GapIsRefusedAndNothingOfItTaken) {
  Progress progress(1);
  const absl::Status status =
      progress.Add(0, List({Report(1, 1, 1), Report(3, 1, 1)})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("reports step 3 where step 2 follows"));
  EXPECT_EQ(progress.last_step(0), 0);
}

TEST(ProgressTest, ImpossibleNumbersAreRefused) {
  Progress progress(1);
  v1::StepReport report = Report(1, 1, 1);
  report.set_wait_seconds(-1);
  EXPECT_FALSE(progress.Add(0, List({report})).ok());
  report.set_wait_seconds(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(progress.Add(0, List({report})).ok());
  report.set_wait_seconds(0);
  report.set_epoch(0);
  EXPECT_FALSE(progress.Add(0, List({report})).ok());
  EXPECT_FALSE(progress.Add(0, List({Report(0, 1, 1)})).ok());
  EXPECT_FALSE(progress.Add(0, List({Report(-5, 1, 1)})).ok());
}

TEST(ProgressTest, DivergedLossIsReportedAsItIs) {
  Progress progress(1);
  progress.Add(0, List({Report(1, std::nan(""), 1)})).value();
  EXPECT_TRUE(std::isnan(progress.Take().at(0).loss.value()));
}

TEST(ProgressTest, RateCoversTheLastFiveSecondsOfSteps) {
  Progress progress(1);
  // Slow start: 10 samples in 4 s, then 100 samples a second.
  progress.Add(0, List({Report(1, 1, 10, 4.0)})).value();
  EXPECT_DOUBLE_EQ(progress.Take().at(0).samples_per_second, 2.5);
  progress.Add(0, List({Report(2, 1, 100, 1.0)})).value();
  EXPECT_DOUBLE_EQ(progress.Take().at(0).samples_per_second, 22.0);  // 110 / 5
  progress.Add(0, List({Report(3, 1, 100, 1.0)})).value();
  EXPECT_DOUBLE_EQ(progress.Take().at(0).samples_per_second, 100.0);  // 200 / 2
  // A step longer than the window counts alone.
  progress.Add(0, List({Report(4, 1, 60, 6.0)})).value();
  EXPECT_DOUBLE_EQ(progress.Take().at(0).samples_per_second, 10.0);
}

TEST(ProgressTest, RankFarAheadIsLeftForLater) {
  Progress progress(2);
  int64_t step = 0;
  uint32_t settled = 1;
  while (settled == 1) {
    settled = *progress.Add(0, List({Report(++step, 1, 1)}));
  }
  EXPECT_EQ(step, static_cast<int64_t>(kMaxWaitingReports) + 1);
  EXPECT_EQ(progress.last_step(0), step - 1);
  progress.Add(1, List({Report(1, 1, 1)})).value();
  EXPECT_EQ(*progress.Add(0, List({Report(step, 1, 1)})), 1u);
}

TEST(ProgressTest, RecordsThatNobodyTakesHoldReportsBack) {
  Progress progress(1);
  int64_t step = 0;
  while (*progress.Add(0, List({Report(++step, 1, 1)})) == 1) {
  }
  EXPECT_EQ(progress.Take().size(), kMaxWaitingReports);
  EXPECT_EQ(*progress.Add(0, List({Report(step, 1, 1)})), 1u);
}

}  // namespace
}  // namespace tributary
