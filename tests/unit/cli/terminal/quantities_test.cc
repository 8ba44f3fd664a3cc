// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/quantities.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(QuantitiesTest, RatesAreInBitsOrBytes) {
  EXPECT_DOUBLE_EQ(*ParseRate("1Gbit"), 125e6);
  EXPECT_DOUBLE_EQ(*ParseRate("200mbit/s"), 25e6);
  EXPECT_DOUBLE_EQ(*ParseRate("12.5MB"), 12.5e6);
  EXPECT_DOUBLE_EQ(*ParseRate("1 GiB/s"), 1 << 30);
  for (const char* wrong : {"", "fast", "1", "0Gbit", "-1Gbit", "1Gbits",
                            "1e300Gbit", "nan", "Gbit"}) {
    EXPECT_THAT(ParseRate(wrong).status().message(), HasSubstr("such as 1Gbit"))
        << wrong;
  }
}

TEST(QuantitiesTest, TimesAndBytesHaveUnits) {
  EXPECT_DOUBLE_EQ(*ParseSeconds("0.2ms"), 2e-4);
  EXPECT_DOUBLE_EQ(*ParseSeconds("50us"), 5e-5);
  EXPECT_DOUBLE_EQ(*ParseSeconds("1s"), 1);
  EXPECT_FALSE(ParseSeconds("1").ok());
  EXPECT_DOUBLE_EQ(*ParseBytes("256kB"), 256e3);
  EXPECT_DOUBLE_EQ(*ParseBytes("4MiB"), 4 << 20);
  EXPECT_DOUBLE_EQ(*ParseBytes("0"), 0);
  EXPECT_FALSE(ParseBytes("4 apples").ok());
}

TEST(QuantitiesTest, ShapesAreExtents) {
  EXPECT_THAT(*ParseShape("28x28"), ElementsAre(28, 28));
  EXPECT_THAT(*ParseShape("64"), ElementsAre(64));
  for (const char* wrong : {"", "28x", "0x3", "28*28", "1x1x1x1x1x1x1x1x1"}) {
    EXPECT_FALSE(ParseShape(wrong).ok()) << wrong;
  }
}

TEST(QuantitiesTest, SecondsHaveThreeDigits) {
  EXPECT_EQ(SecondsText(1.234), "1.23 s");
  EXPECT_EQ(SecondsText(0.0456), "45.6 ms");
  EXPECT_EQ(SecondsText(0.000789), "789 us");
  EXPECT_EQ(SecondsText(0), "0.00 us");
  EXPECT_EQ(SecondsText(75), "75.0 s");
}

}  // namespace
}  // namespace tributary
