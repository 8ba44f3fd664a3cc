#include "common/cost/tensor_shares.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

LayerCost Linear(int64_t in, int64_t out, int first_parameter) {
  LayerCost layer;
  layer.kind = "linear";
  layer.input_shape = {in};
  layer.output_shape = {out};
  layer.first_parameter = first_parameter;
  layer.num_parameters = 2;
  layer.forward_flops = static_cast<double>(2 * in * out + out);
  layer.backward_flops = static_cast<double>(4 * in * out + out);
  layer.kept_elements = out;
  return layer;
}

LayerCost Relu(int64_t size) {
  LayerCost layer;
  layer.kind = "relu";
  layer.input_shape = layer.output_shape = {size};
  layer.forward_flops = layer.backward_flops = static_cast<double>(size);
  return layer;
}

// 4 -> 8 -> 2: weights by columns and rows, the bias behind the sum whole.
TEST(TensorSharesTest, APairOfLinearLayersSumsItsOutputsOnce) {
  ModelCosts model;
  model.layers = {Linear(4, 8, 0), Relu(8), Linear(8, 2, 2)};
  model.parameter_sizes = {32, 8, 16, 2};
  const ModelShare share = ShareOfModel(model, 2);
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

// A pair, whose input's gradient is summed, and a head whose outputs stay cut.
TEST(TensorSharesTest, AWideHeadStaysCutAndSumsTheGradientOfItsInput) {
  ModelCosts model;
  model.layers = {Relu(4), Linear(4, 8, 0), Relu(8), Linear(8, 4, 2),
                  Linear(4, 64, 4)};
  model.layers[3].kind = "conv2d";  // no partner for a pair
  model.parameter_sizes = {32, 8, 32, 4, 256, 64};
  const ModelShare share = ShareOfModel(model, 2);
  EXPECT_THAT(share.parameter_elements, ElementsAre(32, 8, 32, 4, 128, 32));
  EXPECT_TRUE(share.layers[4].forward.empty());
  ASSERT_EQ(share.layers[4].backward.size(), 1u);
  EXPECT_EQ(share.layers[4].backward[0].elements, 4);
}

TEST(TensorSharesTest, AttentionIsCutByHeadsWhereTheyDivide) {
  LayerCost attention;
  attention.kind = "attention";
  attention.input_shape = attention.output_shape = {3, 4};
  attention.num_parameters = 4;
  attention.heads = 2;
  attention.forward_flops = 100;
  attention.backward_flops = 300;
  attention.kept_elements = 12 + 54;
  ModelCosts model;
  model.layers = {Relu(12), attention, Relu(12)};
  model.parameter_sizes = {48, 12, 16, 4};
  const ModelShare share = ShareOfModel(model, 2);
  EXPECT_THAT(share.parameter_elements, ElementsAre(24, 6, 8, 4));
  EXPECT_EQ(share.layers[1].forward_flops, 50);
  EXPECT_EQ(share.layers[1].kept_elements, 12 + 27);
  ASSERT_EQ(share.layers[1].forward.size(), 1u);
  EXPECT_EQ(share.layers[1].forward[0].elements, 12);
  ASSERT_EQ(share.layers[1].backward.size(), 1u);
  EXPECT_THAT(ShareOfModel(model, 3).parameter_elements,
              ElementsAre(48, 12, 16, 4));
}

// Backward goes through the shortcut, then the body, then sums their gradients:
// 30, then 60 of 100 FLOPs, the last 10 of nobody's.
TEST(TensorSharesTest, AGradientIsFinalWhenItsLayersBackwardIsDone) {
  LayerCost residual = Relu(4);
  residual.kind = "residual";
  residual.num_parameters = 2;
  residual.backward_flops = 100;
  residual.body = {Relu(4)};
  residual.body[0].num_parameters = 1;
  residual.body[0].backward_flops = 60;
  residual.shortcut = residual.body;
  residual.shortcut[0].first_parameter = 1;
  residual.shortcut[0].backward_flops = 30;
  ModelCosts model;
  model.layers = {residual};
  model.parameter_sizes = {5, 6};
  EXPECT_THAT(ShareOfModel(model, 1).final_after_share, ElementsAre(0.9, 0.3));
}

TEST(TensorSharesTest, OneRankHasEverything) {
  ModelCosts model;
  model.layers = {Linear(4, 8, 0), Relu(8), Linear(8, 2, 2)};
  model.parameter_sizes = {32, 8, 16, 2};
  const ModelShare share = ShareOfModel(model, 1);
  EXPECT_THAT(share.parameter_elements, ElementsAre(32, 8, 16, 2));
  EXPECT_EQ(share.layers[2].forward_flops, 34);
  EXPECT_TRUE(share.layers[2].forward.empty());
  EXPECT_THAT(share.final_after_share, ElementsAre(1, 1, 1, 1));
}

}  // namespace
}  // namespace tributary
