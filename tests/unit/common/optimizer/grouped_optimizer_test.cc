// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/grouped_optimizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>

namespace tributary {
namespace {

TEST(MatchesPatternTest, AStarStandsForAnyText) {
  EXPECT_TRUE(MatchesPattern("0.weight", "0.weight"));
  EXPECT_FALSE(MatchesPattern("0.weight", "10.weight"));
  EXPECT_FALSE(MatchesPattern("0.weight", "0.weights"));
  EXPECT_FALSE(MatchesPattern("0-weight", "0.weight"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("*", "0.weight"));
  EXPECT_TRUE(MatchesPattern("0.*", "0."));
  EXPECT_TRUE(MatchesPattern("*.bias", "3.body.0.bias"));
  EXPECT_FALSE(MatchesPattern("*.bias", "0.bias.x"));
  EXPECT_TRUE(MatchesPattern("3.*.bias", "3.body.0.bias"));
  EXPECT_TRUE(MatchesPattern("*norm*weight*", "2.norm1.weight"));
  EXPECT_FALSE(MatchesPattern("*norm*norm*", "2.norm1.weight"));
  EXPECT_TRUE(MatchesPattern("*ab*ab", "abab"));
  EXPECT_FALSE(MatchesPattern("*ab*ab", "ab"));
  EXPECT_FALSE(MatchesPattern("aba*ba", "aba"));
  EXPECT_TRUE(MatchesPattern("a**b", "ab"));
}

TEST(MatchesPatternTest, EachStarStandsForAPartOfTheName) {
  using Stars = std::vector<std::string_view>;
  EXPECT_EQ(StarsOf("0.weight", "0.weight"), Stars());
  EXPECT_EQ(StarsOf("0.weight", "1.weight"), std::nullopt);
  EXPECT_EQ(StarsOf("*", "0.weight"), Stars{"0.weight"});
  EXPECT_EQ(StarsOf("*.body.*.bias", "3.body.0.bias"), (Stars{"3", "0"}));
  EXPECT_EQ(StarsOf("*.*", "3.body.0"), (Stars{"3", "body.0"}));
  EXPECT_EQ(StarsOf("a**b", "axb"), (Stars{"", "x"}));
}

OptimizerOptions Decaying(double decay) {
  OptimizerOptions options;
  options.weight_decay = decay;
  options.momentum = 0.9;
  options.dampening = 0.5;
  return options;
}

GroupedOptimizer Grouped() {
  return GroupedOptimizer(
      Decaying(0),
      {{.parameters = {"1.bias"}, .optimizer = Decaying(0.5), .frozen = true},
       {.parameters = {"0.*", "*.bias"},
        .optimizer = Decaying(0.25),
        .learning_rate = [](int64_t step) {
          return 2.0 * static_cast<double>(step);
        }}});
}

TEST(GroupedOptimizerTest, AParameterBelongsToTheFirstGroupThatNamesIt) {
  const GroupedOptimizer optimizer = Grouped();
  EXPECT_EQ(optimizer.num_groups(), 3);
  EXPECT_EQ(optimizer.GroupOf({"1.weight"}), 0);
  EXPECT_EQ(optimizer.GroupOf({"1.bias"}), 1);
  EXPECT_EQ(optimizer.GroupOf({"0.weight"}), 2);
  EXPECT_EQ(optimizer.GroupOf({"2.bias"}), 2);
  EXPECT_FALSE(optimizer.IsFrozen({"1.weight"}));
  EXPECT_TRUE(optimizer.IsFrozen({"1.bias"}));
  EXPECT_FALSE(optimizer.IsFrozen({"2.bias"}));
}

// A slice has the rank in its name.
TEST(GroupedOptimizerTest, ASliceBelongsToTheGroupOfItsParameter) {
  const GroupedOptimizer optimizer = Grouped();
  ParameterSpec slice{.name = "1.bias@1", .shape = {4}};
  EXPECT_EQ(optimizer.GroupOf(slice), 0);
  slice.whole_name = "1.bias";
  EXPECT_EQ(optimizer.GroupOf(slice), 1);
}

TEST(GroupedOptimizerTest, EachGroupIsPreparedWithItsRateAndConstants) {
  const GroupedOptimizer optimizer = Grouped();
  const OptimizerSteps steps = optimizer.Prepare(2, {1, 2, 3}, 0.75);
  ASSERT_EQ(steps.size(), 3u);
  for (const auto& [name, rate, decay] :
       {std::tuple("1.weight", 1.0f, 0.0f),
        std::tuple("0.weight", 3.0f, 0.25f)}) {
    const OptimizerStep step = optimizer.StepFor({name}, steps);
    EXPECT_EQ(step.rate, rate) << name;
    EXPECT_EQ(step.weight_decay, decay) << name;
    EXPECT_EQ(step.gradient_scale, 0.75f) << name;
  }
  EXPECT_TRUE(optimizer.StepsAlike({"0.weight"}, {"2.bias"}));
  EXPECT_FALSE(optimizer.StepsAlike({"0.weight"}, {"2.weight"}));
  EXPECT_FALSE(optimizer.StepsAlike({"1.bias"}, {"2.bias"}));
}

TEST(GroupedOptimizerTest, TheScheduledRatesAreInTheOrderOfTheGroups) {
  const auto rate = [](int64_t step) { return static_cast<double>(step); };
  const GroupedOptimizer optimizer(
      {},
      {{.parameters = {"a"}, .learning_rate = rate},
       {.parameters = {"b"}, .learning_rate = [](int64_t) { return 9.0; }}});
  EXPECT_EQ(optimizer.RatesAt(4, 0.5), (LearningRates{0.5, 4, 9}));
}

}  // namespace
}  // namespace tributary
