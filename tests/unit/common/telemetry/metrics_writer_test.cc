// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/metrics_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tributary {
namespace {

TEST(MetricsWriterTest, SeriesOfOneNameStandTogetherWhoeverWroteThem) {
  MetricsWriter writer;
  writer.Counter("tributary_a_total", "Things.", 3, {{"rank", "0"}});
  writer.Gauge("tributary_b_bytes", "Room.", 2.5);
  writer.Counter("tributary_a_total", "Things.", 4, {{"rank", "1"}});
  EXPECT_EQ(writer.Text(),
            "# HELP tributary_a_total Things.\n"
            "# TYPE tributary_a_total counter\n"
            "tributary_a_total{rank=\"0\"} 3\n"
            "tributary_a_total{rank=\"1\"} 4\n"
            "# HELP tributary_b_bytes Room.\n"
            "# TYPE tributary_b_bytes gauge\n"
            "tributary_b_bytes 2.5\n");
}

TEST(MetricsWriterTest, LabelsEscapeQuotesBackslashesAndLineEnds) {
  MetricsWriter writer;
  writer.Gauge("tributary_info", "Always 1.", 1, {{"name", "a \"b\" \\ c\nd"}});
  EXPECT_EQ(writer.Text(),
            "# HELP tributary_info Always 1.\n"
            "# TYPE tributary_info gauge\n"
            "tributary_info{name=\"a \\\"b\\\" \\\\ c\\nd\"} 1\n");
}

TEST(MetricsWriterTest, ADivergedLossIsNotANumberAndStillAPage) {
  MetricsWriter writer;
  writer.Gauge("tributary_loss", "", std::nan(""), {{"of", "nan"}});
  writer.Gauge("tributary_loss", "", std::numeric_limits<double>::infinity());
  EXPECT_NE(writer.Text().find("tributary_loss{of=\"nan\"} Nan\n"),
            std::string::npos)
      << writer.Text();
  EXPECT_NE(writer.Text().find("tributary_loss +Inf\n"), std::string::npos);
}

TEST(MetricsWriterTest, AHistogramHasCumulativeBucketsUpToInfinity) {
  Histogram histogram({0.5, 2});
  // 0.5 and below, above it to 2, above.
  for (double value : {0.25, 0.5, 2.0, 7.0}) histogram.Observe(value);
  MetricsWriter writer;
  writer.Histogram("tributary_s_seconds", "Spans.", histogram.Snapshot());
  EXPECT_EQ(writer.Text(),
            "# HELP tributary_s_seconds Spans.\n"
            "# TYPE tributary_s_seconds histogram\n"
            "tributary_s_seconds_count 4\n"
            "tributary_s_seconds_sum 9.75\n"
            "tributary_s_seconds_bucket{le=\"0.5\"} 2\n"
            "tributary_s_seconds_bucket{le=\"2\"} 3\n"
            "tributary_s_seconds_bucket{le=\"+Inf\"} 4\n");
}

}  // namespace
}  // namespace tributary
