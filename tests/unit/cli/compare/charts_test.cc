// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/page/charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cli/compare/page/drawing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TicksTest, AreRoundAndReachTheLimit) {
  EXPECT_THAT(LinearTicks(7.3, 8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(LinearTicks(100, 5), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(LinearTicks(0.9, 4), ElementsAre(0, 0.5, 1));
}

TEST(TicksTest, NothingToShowHasAScaleAllTheSame) {
  EXPECT_THAT(LinearTicks(0, 8), ElementsAre(0, 1));
  EXPECT_THAT(LinearTicks(std::numeric_limits<double>::quiet_NaN(), 8),
              ElementsAre(0, 1));
}

TEST(TicksTest, LogarithmicOnesArePowersOfTen) {
  EXPECT_THAT(LogTicks(3e-3, 0.5), ElementsAre(1e-3, 1e-2, 1e-1, 1));
  EXPECT_THAT(LogTicks(1, 1), ElementsAre(1, 10));
}

TEST(ThinTest, ManyPointsBecomeMeansOfNeighbours) {
  const std::vector<LossPoint> thin =
      Thin({{1, 8}, {2, 6}, {3, 4}, {4, 2}, {5, 1}}, 2);
  ASSERT_EQ(thin.size(), 2u);
  EXPECT_EQ(thin[0].loss, 7);  // (8 + 6) / 2
  EXPECT_DOUBLE_EQ(thin[1].loss, 7.0 / 3);
  EXPECT_EQ(thin[1].step, 4);  // the middle one
  EXPECT_EQ(Thin(thin, 2).size(), 2u);
}

CompareRow Row(const std::string& name, double loss) {
  CompareRow row;
  row.name = name;
  row.workers = 2;
  row.status = "done";
  row.parts = StepParts{.step = 0.01, .compute = 0.006, .waiting = 0.004};
  row.losses = {{1, loss}, {2, loss / 2}};
  return row;
}

TEST(ChartsTest, PredictionIsMarkedWhereThereIsOne) {
  CompareReport report;
  report.rows = {Row("single", 1)};
  EXPECT_THAT(StepPartsChart(report), Not(HasSubstr("predicted")));
  report.rows[0].predicted_step_seconds = 0.02;
  EXPECT_THAT(StepPartsChart(report), HasSubstr("predicted"));
}

TEST(ChartsTest, TheMarkOfAPredictionDoesNotGoThroughTheNumber) {
  CompareReport report;
  report.rows = {Row("single", 1)};
  report.rows[0].predicted_step_seconds = 0.0101;
  // The mark is at 1080, 8 pixels right of the bar: the number follows it.
  EXPECT_THAT(StepPartsChart(report), HasSubstr("x=\"1088\""));
  report.rows[0].predicted_step_seconds = 0.0099;  // the bar ends at 1080
  EXPECT_THAT(StepPartsChart(report), HasSubstr("x=\"1088\""));
  // The mark is far off: the bar ends at 250 + 830 / 2, the number 8 later.
  report.rows[0].predicted_step_seconds = 0.02;
  EXPECT_THAT(StepPartsChart(report), HasSubstr("x=\"673\""));
}

TEST(ChartsTest, BarsAreAsLongAsTheirPart) {
  CompareReport report;
  report.rows = {Row("single", 1)};
  // 10 ms are 830 pixels: compute has 498, waiting the 332 behind it.
  const std::string chart = StepPartsChart(report);
  EXPECT_THAT(chart, HasSubstr("class=\"fill-forward\" x=\"250\" y=\"45\" "
                               "width=\"498\" height=\"22\""));
  EXPECT_THAT(chart, HasSubstr("class=\"fill-waiting\" x=\"748\" y=\"45\" "
                               "width=\"332\" height=\"22\""));
}

TEST(ChartsTest, EqualLossesHaveNoDistanceToDraw) {
  CompareReport report;
  report.rows = {Row("single", 1), Row("parameter_server", 1)};
  EXPECT_EQ(LossDifferenceChart(report), "");
  report.rows[1].losses[1].loss += 1e-6;
  EXPECT_THAT(LossDifferenceChart(report), HasSubstr("parameter_server"));
  report.rows[0].name = "parameter_server:async";  // nothing to measure from
  EXPECT_EQ(LossDifferenceChart(report), "");
}

}  // namespace
}  // namespace tributary
