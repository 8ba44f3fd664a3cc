// SPDX-License-Identifier: Apache-2.0
#include "server/store/statistics/statistics_exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tributary {
namespace {

constexpr auto kGradientNorm = StatisticsKind::kGradientNorm;

const ParameterSpecs kSpecs = {{"w", {10, 1024}}, {"b", {10}}, {"v", {5000}}};

// A value for each grain that makes the order of additions visible.
double Value(const Grain& grain) {
  return std::pow(10.0, (grain.parameter * 7 + grain.index * 5) % 17);
}

std::vector<double> Sums(int shards) {
  const auto plan = PartitionPlan::Create(kSpecs, shards, 1 << 16);
  EXPECT_TRUE(plan.ok());
  StatisticsExchange exchange(*plan, /*shard=*/0);
  const std::vector<Grain> own = plan->Grains(0);
  for (int s = shards - 1; s > 0; --s) {
    std::vector<double> values;
    for (const Grain& grain : plan->Grains(s)) values.push_back(Value(grain));
    bool complete = false;
    EXPECT_TRUE(
        exchange.AddShard(0, kGradientNorm, s, std::move(values), &complete)
            .ok());
    EXPECT_FALSE(complete);
  }
  size_t at = 0;
  for (const Block& block : plan->blocks(0)) {
    std::vector<double> values;
    for (const Slice& slice : block.slices) {
      for (int64_t i = slice.begin; i < slice.end; i += kGrainElements) {
        values.push_back(Value(own[at++]));
      }
    }
    exchange.AddBlock(0, kGradientNorm, block.index, values);
  }
  EXPECT_TRUE(exchange.Complete(0, kGradientNorm));
  return exchange.PerParameter(0, kGradientNorm)[0];
}

TEST(StatisticsExchangeTest, SumsAreTheSameBitsForEveryNumberOfShards) {
  const std::vector<double> one = Sums(1);
  ASSERT_EQ(one.size(), 3u);
  for (int shards : {2, 3, 5}) EXPECT_EQ(Sums(shards), one) << shards;
}

// A one for each grain of the block.
std::vector<double> Ones(const Block& block) {
  int64_t grains = 0;
  for (const Slice& slice : block.slices) grains += NumGrains(slice.size());
  return std::vector<double>(grains, 1.0);
}

TEST(StatisticsExchangeTest, IsCompleteOnceWhateverComesTwice) {
  const auto plan = PartitionPlan::Create(kSpecs, 2, 1 << 16);
  ASSERT_TRUE(plan.ok());
  StatisticsExchange exchange(*plan, 0);
  for (const Block& block : plan->blocks(0)) {
    exchange.AddBlock(0, kGradientNorm, block.index, Ones(block));
  }
  EXPECT_TRUE(exchange.Local(0, kGradientNorm).has_value());
  EXPECT_FALSE(exchange.Complete(0, kGradientNorm));
  std::vector<double> theirs;
  for (const Block& block : plan->blocks(1)) {
    const std::vector<double> ones = Ones(block);
    theirs.insert(theirs.end(), ones.begin(), ones.end());
  }
  bool complete = false;
  ASSERT_TRUE(exchange.AddShard(0, kGradientNorm, 1, theirs, &complete).ok());
  EXPECT_TRUE(complete);
  ASSERT_TRUE(exchange.AddShard(0, kGradientNorm, 1, theirs, &complete).ok());
  EXPECT_FALSE(complete);
}

TEST(StatisticsExchangeTest, RefusesAWrongNumberOfValues) {
  const auto plan = PartitionPlan::Create(kSpecs, 2, 1 << 16);
  ASSERT_TRUE(plan.ok());
  StatisticsExchange exchange(*plan, 0);
  bool complete = false;
  EXPECT_TRUE(absl::IsInvalidArgument(
      exchange.AddShard(0, kGradientNorm, 1, {1.0}, &complete)));
}

TEST(StatisticsExchangeTest, ForgetsWhatIsPast) {
  const auto plan = PartitionPlan::Create({{"w", {10}}}, 1, 1 << 16);
  ASSERT_TRUE(plan.ok());
  StatisticsExchange exchange(*plan, 0);
  exchange.AddBlock(0, kGradientNorm, 0, std::vector<double>{1.0});
  exchange.AddBlock(1, kGradientNorm, 0, std::vector<double>{1.0});
  exchange.ForgetBefore(1);
  EXPECT_FALSE(exchange.Complete(0, kGradientNorm));
  EXPECT_TRUE(exchange.Complete(1, kGradientNorm));
  EXPECT_EQ(exchange.oldest_step(), 1);
}

}  // namespace
}  // namespace tributary
