// SPDX-License-Identifier: Apache-2.0
#include "common/plan/partition_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "common/base/limits.h"

namespace tributary {
namespace {

ParameterSpecs Mlp() {
  return {{"0.weight", {1024, 784}},  {"0.bias", {1024}},
          {"2.weight", {1024, 1024}}, {"2.bias", {1024}},
          {"4.weight", {10, 1024}},   {"4.bias", {10}}};
}

TEST(PartitionPlanTest, EveryElementIsInExactlyOneBlock) {
  for (int shards : {1, 2, 3, 7}) {
    const auto plan = PartitionPlan::Create(Mlp(), shards, 1 << 20);
    ASSERT_TRUE(plan.ok()) << plan.status();
    std::vector<std::vector<int>> seen;
    for (const ParameterSpec& spec : Mlp()) seen.emplace_back(spec.size());
    for (int s = 0; s < shards; ++s) {
      int64_t offset = 0;
      for (const Block& block : plan->blocks(s)) {
        EXPECT_EQ(block.offset, offset);
        offset += block.size;
        int64_t within = 0;
        for (const Slice& slice : block.slices) {
          EXPECT_EQ(slice.offset, within);
          within += slice.size();
          for (int64_t i = slice.begin; i < slice.end; ++i) {
            ++seen[slice.parameter][i];
          }
        }
        EXPECT_EQ(block.size, within);
      }
      EXPECT_EQ(plan->shard_elements(s), offset);
    }
    for (const std::vector<int>& counts : seen) {
      EXPECT_EQ(std::count(counts.begin(), counts.end(), 1),
                static_cast<int64_t>(counts.size()));
    }
  }
}

TEST(PartitionPlanTest, ShardsHoldNearlyTheSameBytes) {
  for (int shards : {2, 3, 4, 8}) {
    const auto plan = PartitionPlan::Create(Mlp(), shards, 4 << 20);
    ASSERT_TRUE(plan.ok());
    int64_t least = INT64_MAX, most = 0;
    for (int s = 0; s < shards; ++s) {
      least = std::min(least, plan->shard_elements(s));
      most = std::max(most, plan->shard_elements(s));
    }
    EXPECT_LT(most, 1.02 * least) << shards << " shards";
  }
}

TEST(PartitionPlanTest, CutsOnlyBetweenGrains) {
  const auto plan =
      PartitionPlan::Create({{"w", {3, 5000}}, {"b", {7}}}, 4, 1 << 16);
  ASSERT_TRUE(plan.ok());
  std::set<Grain> grains;
  size_t count = 0;
  for (int s = 0; s < 4; ++s) {
    for (const Grain& grain : plan->Grains(s)) grains.insert(grain);
    count += plan->Grains(s).size();
  }
  EXPECT_EQ(grains.size(), count);  // none in two shards
  EXPECT_EQ(count, 15u + 1u);       // ceil(15000 / 1024) and one for b
}

TEST(PartitionPlanTest, BlocksComeInBackwardOrderAndKeepToTheirSize) {
  const auto plan = PartitionPlan::Create(Mlp(), 2, 2 << 20);
  ASSERT_TRUE(plan.ok());
  for (int s = 0; s < 2; ++s) {
    int last = static_cast<int>(Mlp().size());
    for (const Block& block : plan->blocks(s)) {
      EXPECT_LE(block.bytes(), 1 << 20);
      for (const Slice& slice : block.slices) {
        EXPECT_LE(slice.parameter, last);
        last = slice.parameter;
      }
    }
  }
}

TEST(PartitionPlanTest, MoreShardsThanParametersLeavesSomeEmpty) {
  const auto plan = PartitionPlan::Create({{"w", {5}}, {"b", {1}}}, 3, 1 << 20);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->shard_elements(2), 0);
  EXPECT_TRUE(plan->blocks(2).empty());
  EXPECT_EQ(plan->num_blocks(), 2);
}

TEST(PartitionPlanTest, ScatterUndoesGather) {
  const ParameterSpecs specs = {{"w", {3, 1500}}, {"b", {9}}};
  const auto plan = PartitionPlan::Create(specs, 2, 1 << 16);
  ASSERT_TRUE(plan.ok());
  std::vector<float> w(4500), b(9), w2(4500), b2(9);
  std::iota(w.begin(), w.end(), 0.0f);
  std::iota(b.begin(), b.end(), 5000.0f);
  const std::vector<const float*> from = {w.data(), b.data()};
  const std::vector<float*> to = {w2.data(), b2.data()};
  for (int s = 0; s < 2; ++s) {
    for (const Block& block : plan->blocks(s)) {
      std::vector<float> payload(block.size);
      PartitionPlan::Gather(block, from, payload.data());
      PartitionPlan::Scatter(block, payload.data(), to);
    }
  }
  EXPECT_EQ(w, w2);
  EXPECT_EQ(b, b2);
}

TEST(PartitionPlanTest, RefusesWhatCannotBeCut) {
  EXPECT_FALSE(PartitionPlan::Create({}, 1, 1 << 20).ok());
  EXPECT_FALSE(PartitionPlan::Create(Mlp(), 0, 1 << 20).ok());
  EXPECT_FALSE(PartitionPlan::Create(Mlp(), 257, 1 << 20).ok());
  EXPECT_FALSE(PartitionPlan::Create(Mlp(), 1, 0).ok());
  EXPECT_FALSE(PartitionPlan::Create(Mlp(), 1, uint64_t{1} << 40).ok());
  EXPECT_FALSE(PartitionPlan::Create({{"w", {0}}}, 1, 1 << 20).ok());
  EXPECT_FALSE(PartitionPlan::Create({{"w", {-3}}}, 1, 1 << 20).ok());
  ParameterSpec running = {"m", {1}};
  for (double momentum : {-0.1, 1.1, std::nan("")}) {
    running.running_momentum = momentum;
    EXPECT_FALSE(PartitionPlan::Create({running}, 1, 1 << 20).ok());
  }
  EXPECT_FALSE(
      PartitionPlan::Create({{"w", {1}}, {"w", {1}}}, 1, 1 << 20).ok());
  EXPECT_FALSE(
      PartitionPlan::Create({{"w", {1 << 30, 1 << 30}}}, 1, 1 << 20).ok());
}

// Code that assembles a parameter from its slices trusts the plan.
TEST(PartitionPlanTest, SlicesMakeUpTheirParameterOrAreRefused) {
  const ParameterSpec left = {.name = "w@0",
                              .shape = {2, 3},
                              .whole_name = "w",
                              .whole_shape = {2, 7},
                              .slice = {.dim = 1, .begin = 0, .end = 3}};
  ParameterSpec right = {.name = "w@1",
                         .shape = {2, 4},
                         .whole_name = "w",
                         .whole_shape = {2, 7},
                         .slice = {.dim = 1, .begin = 3, .end = 7}};
  const ParameterSpec other = {"b", {7}};
  const auto cut = [](const ParameterSpecs& specs) {
    return PartitionPlan::Create(specs, 1, 1 << 20).status();
  };
  EXPECT_TRUE(cut({left, right, other}).ok());
  EXPECT_TRUE(cut({other, left, right}).ok());
  EXPECT_FALSE(cut({left}).ok());
  EXPECT_FALSE(cut({right}).ok());
  EXPECT_FALSE(cut({right, left}).ok());
  EXPECT_FALSE(cut({left, other, right}).ok());
  EXPECT_FALSE(cut({left, right, {"w", {1}}}).ok());
  // Two slices that disagree about the shape of the whole.
  right.whole_shape = {2, 9};
  right.shape = {2, 6};
  right.slice.end = 9;
  EXPECT_FALSE(cut({left, right}).ok());
}

// A few words announce 2^36 elements: 2^22 blocks of 2^14 elements, the
// smallest, would take gigabytes before there is one weight.
TEST(PartitionPlanTest, RefusesMoreBlocksThanItsLimit) {
  const ParameterSpecs huge = {{"w", {int64_t{1} << 36}}};
  const auto refused = PartitionPlan::Create(huge, 1, 1 << 10);
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("raise bucket_bytes"),
            absl::string_view::npos)
      << refused.status();
  // In blocks of 64 MiB they are 4096.
  const auto plan = PartitionPlan::Create(huge, 1, kMaxBucketBytes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_blocks(), 4096);
}

TEST(PartitionPlanTest, RefusesMoreParametersThanItsLimit) {
  ParameterSpecs many(PartitionPlan::kMaxParameters);
  for (size_t p = 0; p < many.size(); ++p) many[p].name = std::to_string(p);
  EXPECT_TRUE(PartitionPlan::CheckParameters(many).ok());
  many.push_back({"another", {1}});
  const absl::Status refused = PartitionPlan::CheckParameters(many);
  EXPECT_NE(refused.message().find("at most 65536 parameters, got 65537"),
            absl::string_view::npos)
      << refused;
}

TEST(PartitionPlanTest, DefaultBlocksAreAPartOfTheShard) {
  constexpr double kMiB = 1 << 20;
  const auto bytes = [](double weight_bytes, int shards, bool one_machine) {
    return PartitionPlan::DefaultBucketBytes(weight_bytes, shards, one_machine);
  };
  EXPECT_EQ(bytes(8 * kMiB, 1, true), 4u << 20);
  EXPECT_EQ(bytes(8 * kMiB, 4, true), 4u << 20);    // blocks of 1 MiB
  EXPECT_EQ(bytes(256 * kMiB, 4, true), 8u << 20);  // of 2 MiB
  EXPECT_EQ(bytes(1024 * kMiB, 4, true), 16u << 20);
  EXPECT_EQ(bytes(8 * kMiB, 1, false), 256u << 10);
  EXPECT_EQ(bytes(8 * kMiB, 2, false), 256u << 10);  // blocks of 128 KiB
  // Not below the smallest block, 64 KiB, and not above 1 MiB.
  EXPECT_EQ(bytes(1000, 1, false), 64u << 10);
  EXPECT_EQ(bytes(1000, 3, false), 192u << 10);
  EXPECT_EQ(bytes(1024 * kMiB, 2, false), 2u << 20);
  EXPECT_EQ(bytes(1024 * kMiB, 256, false), 32u << 20);
}

// A model of a tebibyte would have 2^20 blocks of 1 MiB.
TEST(PartitionPlanTest, DefaultBlocksOfAHugeModelAreNotTooMany) {
  const double bytes = static_cast<double>(int64_t{1} << 40);
  for (const bool one_machine : {false, true}) {
    const uint64_t bucket =
        PartitionPlan::DefaultBucketBytes(bytes, 1, one_machine);
    EXPECT_EQ(bucket, kMaxBucketBytes);
    EXPECT_TRUE(
        PartitionPlan::Create({{"w", {int64_t{1} << 38}}}, 1, bucket).ok());
  }
}

}  // namespace
}  // namespace tributary
