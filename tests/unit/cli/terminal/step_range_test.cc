// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/step_range.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

TEST(StepRangeTest, ReadsARangeOrOneStep) {
  const auto range = ParseStepNumbers("100-105");
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->first, 100);
  EXPECT_EQ(range->last, 105);
  const auto one = ParseStepNumbers("7");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->first, 7);
  EXPECT_EQ(one->last, 7);
}

TEST(StepRangeTest, RefusesEverythingElse) {
  for (const char* text : {"", "-", "5-", "-5", "0-3", "5-3", "a-b", "1-2-3",
                           "1.5", "99999999999999999999", "1-2 x"}) {
    EXPECT_FALSE(ParseStepNumbers(text).ok()) << text;
  }
  EXPECT_EQ(std::string(ParseStepNumbers("5-3").status().message()),
            "steps are written as 100-105 or 100, counted from 1; got "
            "\"5-3\"");
}

TEST(StepRangeTest, WritesStepsAsRanges) {
  EXPECT_EQ(StepNumbersText({}), "");
  EXPECT_EQ(StepNumbersText({9}), "9");
  EXPECT_EQ(StepNumbersText({3, 4, 5, 9, 11, 12}), "3-5, 9, 11-12");
}

}  // namespace
}  // namespace tributary
