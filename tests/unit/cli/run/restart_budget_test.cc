// SPDX-License-Identifier: Apache-2.0
#include "cli/run/restart_budget.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(RestartBudgetTest, TheFirstIsReplacedAtOnceLaterOnesAfterLongerPauses) {
  RestartBudget budget(/*max_restarts=*/7);
  const int64_t pauses[] = {0, 1, 2, 4, 8, 10, 10};
  for (int64_t pause : pauses) {
    EXPECT_EQ(budget.Ended("worker-0", kSecond), pause * kSecond);
  }
  EXPECT_EQ(budget.Ended("worker-0", kSecond), std::nullopt);
  EXPECT_EQ(budget.Ended("worker-1", kSecond), 0) << "each has its own";
}

TEST(RestartBudgetTest, OneThatHasLivedForTenMinutesIsForgivenTheOthers) {
  RestartBudget budget(/*max_restarts=*/1);
  EXPECT_EQ(budget.Ended("worker-0", kSecond), 0);
  for (int week = 0; week < 100; ++week) {
    EXPECT_EQ(budget.Ended("worker-0", 600 * kSecond), 0);
  }
  EXPECT_EQ(budget.Ended("worker-0", 599 * kSecond), std::nullopt);
}

TEST(RestartBudgetTest, WithoutABudgetNobodyIsReplaced) {
  RestartBudget budget(/*max_restarts=*/0);
  EXPECT_EQ(budget.Ended("worker-0", 3600 * kSecond), std::nullopt);
}

}  // namespace
}  // namespace tributary
