// SPDX-License-Identifier: Apache-2.0
#include "common/plan/gradient_bucketer.h"

#include <gtest/gtest.h>

#include <vector>

namespace tributary {
namespace {

std::vector<int> Mark(GradientBucketer& bucketer, int parameter) {
  std::vector<int> left;
  bucketer.MarkReady(parameter,
                     [&](const Block& block) { left.push_back(block.index); });
  return left;
}

TEST(GradientBucketerTest, ABlockLeavesWithTheLastOfItsParameters) {
  // Backward order b1, w1, b0, w0; 16384 elements fill a block.
  const auto plan = PartitionPlan::Create(
      {{"w0", {16384}}, {"b0", {100}}, {"w1", {16000}}, {"b1", {50}}}, 1,
      65536);
  ASSERT_TRUE(plan.ok());
  GradientBucketer bucketer(*plan);
  for (int step = 0; step < 2; ++step) {
    bucketer.Reset();
    EXPECT_TRUE(Mark(bucketer, 3).empty());
    EXPECT_TRUE(Mark(bucketer, 2).empty());
    EXPECT_EQ(Mark(bucketer, 1), std::vector<int>{0});  // b1, w1, b0
    EXPECT_EQ(Mark(bucketer, 0), std::vector<int>{1});
  }
}

TEST(GradientBucketerTest, AnyOrderSendsEveryBlockOnce) {
  const auto plan = PartitionPlan::Create(
      {{"w0", {40000}}, {"b0", {100}}, {"w1", {16000}}, {"b1", {50}}}, 3,
      65536);
  ASSERT_TRUE(plan.ok());
  GradientBucketer bucketer(*plan);
  size_t sent = 0;
  for (int parameter : {0, 2, 1, 3}) sent += Mark(bucketer, parameter).size();
  EXPECT_EQ(sent, static_cast<size_t>(plan->num_blocks()));
}

TEST(GradientBucketerTest, ABlockLeavesWithTheLastOfItsElements) {
  const auto plan = PartitionPlan::Create({{"w", {40000}}}, 1, 65536);
  ASSERT_TRUE(plan.ok());
  GradientBucketer bucketer(*plan);
  std::vector<int64_t> left;  // where the blocks begin
  const auto mark = [&](int64_t begin, int64_t end) {
    left.clear();
    bucketer.MarkReady(0, begin, end, [&](const Block& block) {
      left.push_back(block.slices[0].begin);
    });
    return left;
  };
  for (int step = 0; step < 2; ++step) {
    bucketer.Reset();
    EXPECT_EQ(mark(0, 16383), std::vector<int64_t>());
    EXPECT_EQ(mark(16383, 20000), std::vector<int64_t>{0});
    EXPECT_EQ(mark(30000, 40000), std::vector<int64_t>{32768});
    EXPECT_EQ(mark(20000, 30000), std::vector<int64_t>{16384});
  }
}

}  // namespace
}  // namespace tributary
