// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/format.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tributary {
namespace {

TEST(FormatTest, CountsShrinkToThousandsMillionsAndBillions) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(949.6), "950");
  EXPECT_EQ(FormatCount(999.6), "1.0k");
  EXPECT_EQ(FormatCount(45'210), "45.2k");
  EXPECT_EQ(FormatCount(999'960), "1.0M");
  EXPECT_EQ(FormatCount(1.26e6), "1.3M");
  EXPECT_EQ(FormatCount(2e9), "2.0G");
  EXPECT_EQ(FormatCount(std::nan("")), "-");
}

TEST(FormatTest, DurationsReadAsOnAClock) {
  EXPECT_EQ(FormatDuration(0), "0:00");
  EXPECT_EQ(FormatDuration(7.4), "0:07");
  EXPECT_EQ(FormatDuration(59.6), "1:00");
  EXPECT_EQ(FormatDuration(754), "12:34");
  EXPECT_EQ(FormatDuration(3723), "1:02:03");
}

TEST(FormatTest, UnknownDurationsAreADash) {
  EXPECT_EQ(FormatDuration(-1), "-");
  EXPECT_EQ(FormatDuration(INFINITY), "-");
  EXPECT_EQ(FormatDuration(std::nan("")), "-");
}

TEST(FormatTest, ShortTimesHaveTenths) {
  EXPECT_EQ(FormatElapsed(2.34), "2.3 s");
  EXPECT_EQ(FormatElapsed(59.96), "1:00");
}

TEST(FormatTest, MetricsKeepFourDigits) {
  EXPECT_EQ(FormatMetric(0.79), "0.7900");
  EXPECT_EQ(FormatMetric(2.30486), "2.3049");
  EXPECT_EQ(FormatMetric(12.3456), "12.35");
  EXPECT_EQ(FormatMetric(0.00001234), "1.234e-05");
  EXPECT_EQ(FormatMetric(std::nan("")), "nan");
  EXPECT_EQ(FormatMetric(-std::nan("")), "nan");
}

}  // namespace
}  // namespace tributary
