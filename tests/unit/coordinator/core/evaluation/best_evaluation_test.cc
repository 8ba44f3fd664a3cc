// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/best_evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tributary {
namespace {

TEST(BestEvaluationTest, HigherAccuracyIsBetterAndTheFirstOfEqualOnes) {
  BestEvaluation best("accuracy");
  EXPECT_FALSE(best.step().has_value());
  best.Add(10, {{"accuracy", 0.5}, {"loss", 1}});
  best.Add(20, {{"accuracy", 0.7}, {"loss", 2}});
  best.Add(30, {{"accuracy", 0.7}, {"loss", 0}});
  best.Add(40, {{"accuracy", 0.6}, {"loss", 0}});
  EXPECT_EQ(best.step(), 20);
  EXPECT_EQ(best.value(), 0.7);
  EXPECT_EQ(best.since(), 2);
}

TEST(BestEvaluationTest, LowerLossAndPerplexityAreBetter) {
  for (const char* metric : {"loss", "perplexity"}) {
    BestEvaluation best(metric);
    best.Add(10, {{metric, 3}});
    best.Add(20, {{metric, 2}});
    best.Add(30, {{metric, 4}});
    EXPECT_EQ(best.step(), 20) << metric;
    EXPECT_EQ(best.since(), 1) << metric;
  }
}

TEST(BestEvaluationTest, WhatIsNoNumberIsNoImprovement) {
  BestEvaluation best("auc");
  best.Add(10, {{"auc", std::nan("")}});
  best.Add(20, {{"loss", 1}});
  EXPECT_FALSE(best.step().has_value());
  EXPECT_EQ(best.since(), 2);
  best.Add(30, {{"auc", 0.5}});
  EXPECT_EQ(best.step(), 30);
  EXPECT_EQ(best.since(), 0);
}

}  // namespace
}  // namespace tributary
