// SPDX-License-Identifier: Apache-2.0
#include "common/cost/tensor_shares.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/layers/simple_model.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

ModelShare ShareOf(const ModelCosts& costs, int ranks, bool cut_logits) {
  return ShareOfModel(costs, TensorCuts(costs.model, ranks, cut_logits));
}

// 4 -> 8 -> 2: weights by columns and rows; the bias after the sum is whole.
TEST(TensorSharesTest, APairOfLinearLayersSumsItsOutputsOnce) {
  const ModelCosts costs = CostsOf("  mlp: {in: 4, hidden: [8], out: 2}", {4});
  const ModelShare share = ShareOf(costs, 2, /*cut_logits=*/true);
  EXPECT_THAT(share.parameter_elements, ElementsAre(16, 4, 8, 2));
  EXPECT_THAT(share.layer_of_parameter, ElementsAre(0, 0, 2, 2));
  EXPECT_EQ(share.layers[0].forward_flops, 72 / 2);
  EXPECT_EQ(share.layers[0].kept_elements, 4);
  EXPECT_EQ(share.layers[1].forward_flops, 4);
  EXPECT_TRUE(share.layers[0].forward.empty());
  EXPECT_TRUE(share.layers[0].backward.empty()) << "the input has no gradient";
  ASSERT_EQ(share.layers[2].forward.size(), 1u);
  EXPECT_EQ(share.layers[2].forward[0].elements, 2);
  EXPECT_TRUE(share.layers[2].backward.empty());
}

// 9 features over 2 ranks: the second has 5.
TEST(TensorSharesTest, TheRankThatHoldsMostCounts) {
  const ModelCosts costs = CostsOf("  mlp: {in: 4, hidden: [9], out: 2}", {4});
  EXPECT_THAT(ShareOf(costs, 2, true).parameter_elements,
              ElementsAre(20, 5, 10, 2));
}

// A pair, whose input's gradient is summed, and a head whose outputs stay cut
// if the loss takes them so, and are gathered otherwise.
TEST(TensorSharesTest, AWideHeadStaysCutAndSumsTheGradientOfItsInput) {
  const ModelCosts costs = CostsOf(R"(  sequential:
    - layernorm: {features: 4}
    - linear: {in: 4, out: 8}
    - relu
    - linear: {in: 8, out: 4}
    - layernorm: {features: 4}
    - linear: {in: 4, out: 64}
)",
                                   {4});
  const ModelShare share = ShareOf(costs, 2, /*cut_logits=*/true);
  EXPECT_THAT(share.parameter_elements,
              ElementsAre(4, 4, 16, 4, 16, 4, 4, 4, 128, 32));
  ASSERT_EQ(share.layers[1].backward.size(), 1u);
  EXPECT_EQ(share.layers[1].backward[0].elements, 4);
  EXPECT_TRUE(share.layers[5].forward.empty());
  ASSERT_EQ(share.layers[5].backward.size(), 1u);
  EXPECT_EQ(share.layers[5].backward[0].elements, 4);

  const ModelShare gathered = ShareOf(costs, 2, /*cut_logits=*/false);
  ASSERT_EQ(gathered.layers[5].forward.size(), 1u);
  EXPECT_TRUE(gathered.layers[5].forward[0].gather);
  EXPECT_EQ(gathered.layers[5].forward[0].elements, 64);
}

// A flatten before it has no parameters, so nobody asks for that gradient.
TEST(TensorSharesTest, TheFirstLayerWithParametersSumsNoGradient) {
  const ModelCosts costs = CostsOf(R"(  sequential:
    - flatten
    - linear: {in: 4, out: 8}
    - relu
    - linear: {in: 8, out: 2}
)",
                                   {2, 2});
  EXPECT_TRUE(ShareOf(costs, 2, true).layers[1].backward.empty());
}

// Attention keeps 12 outputs and 54 elements of heads, half of these per rank.
TEST(TensorSharesTest, AttentionIsCutByHeadsWhereTheyDivide) {
  const ModelCosts costs = CostsOf(R"(  sequential:
    - layernorm: {features: 4}
    - attention: {dim: 4, heads: 2}
)",
                                   {3, 4});
  const ModelShare share = ShareOf(costs, 2, true);
  EXPECT_THAT(share.parameter_elements, ElementsAre(4, 4, 24, 6, 8, 4));
  EXPECT_EQ(share.layers[1].forward_flops, costs.layers[1].forward_flops / 2);
  EXPECT_EQ(share.layers[1].kept_elements, 12 + 27);
  ASSERT_EQ(share.layers[1].forward.size(), 1u);
  EXPECT_EQ(share.layers[1].forward[0].elements, 12);
  ASSERT_EQ(share.layers[1].backward.size(), 1u);
  EXPECT_THAT(ShareOf(costs, 3, true).parameter_elements,
              ElementsAre(4, 4, 48, 12, 16, 4));
}

// Backward goes through the shortcut, then the body, then sums their gradients:
// 30, then 60 of 100 FLOPs; the last 10 belong to no parameter.
TEST(TensorSharesTest, AGradientIsFinalWhenItsLayersBackwardIsDone) {
  LayerCost residual;
  residual.kind = "residual";
  residual.num_parameters = 2;
  residual.backward_flops = 100;
  residual.body.emplace_back();
  residual.body[0].num_parameters = 1;
  residual.body[0].backward_flops = 60;
  residual.shortcut = residual.body;
  residual.shortcut[0].first_parameter = 1;
  residual.shortcut[0].backward_flops = 30;
  ModelCosts model;
  model.layers = {residual};
  model.parameter_sizes = {5, 6};
  EXPECT_THAT(ShareOfModel(model, TensorCuts()).final_after_share,
              ElementsAre(0.9, 0.3));
}

TEST(TensorSharesTest, OneRankHasEverything) {
  const ModelCosts costs = CostsOf("  mlp: {in: 4, hidden: [8], out: 2}", {4});
  const ModelShare share = ShareOfModel(costs, TensorCuts());
  EXPECT_THAT(share.parameter_elements, ElementsAre(32, 8, 16, 2));
  EXPECT_EQ(share.layers[2].forward_flops, 34);
  EXPECT_TRUE(share.layers[2].forward.empty());
  EXPECT_THAT(share.final_after_share, ElementsAre(1, 1, 1, 1));
}

}  // namespace
}  // namespace tributary
