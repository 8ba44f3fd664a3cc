// SPDX-License-Identifier: Apache-2.0
#include "common/layers/model_costs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/layers/simple_model.h"

namespace tributary {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Number>
std::vector<Number> Each(const ModelCosts& costs, Number LayerCost::*member) {
  std::vector<Number> numbers;
  for (const LayerCost& layer : costs.layers) numbers.push_back(layer.*member);
  return numbers;
}

// linear 4 -> 3: 2 * 3 * 4 and 3 for the bias; relu 3; linear 3 -> 2: 12 + 2.
// Backward: the weights as in forward, and the input of the second linear; the
// relu works in the first linear's output.
TEST(LayerCostsTest, AnMlpCountsProductsOnceForwardAndTwiceBackward) {
  const ModelCosts costs = CostsOf("  mlp: {in: 4, hidden: [3], out: 2}", {4});
  EXPECT_THAT(Each(costs, &LayerCost::kind),
              ElementsAre("linear", "relu", "linear"));
  EXPECT_THAT(Each(costs, &LayerCost::forward_flops), ElementsAre(27, 3, 14));
  EXPECT_THAT(Each(costs, &LayerCost::backward_flops), ElementsAre(27, 3, 26));
  EXPECT_THAT(Each(costs, &LayerCost::parameter_elements),
              ElementsAre(15, 0, 8));
  EXPECT_THAT(Each(costs, &LayerCost::kept_elements), ElementsAre(3, 0, 2));
  // One array of 3 passes back from the last linear to the first.
  EXPECT_EQ(costs.workspace_elements, 3);
  EXPECT_THAT(costs.parameter_sizes, ElementsAre(12, 3, 6, 2));
  EXPECT_EQ(costs.parameter_elements(), 23);
  EXPECT_EQ(costs.forward_flops(), 44);
  EXPECT_EQ(costs.backward_flops(), 56);
}

// conv 1 -> 2 over 8 x 8: 128 outputs of 9 products and a bias; pool: 32
// outputs of 4; linear 32 -> 5 and 5 -> 3.
TEST(LayerCostsTest, ACnnCountsWindowsAndKeepsWhereTheMaximaWere) {
  const ModelCosts costs = CostsOf(
      "  cnn: {image: 8, channels: [2], hidden: 5, classes: 3}", {8, 8});
  EXPECT_THAT(Each(costs, &LayerCost::kind),
              ElementsAre("conv2d", "relu", "max_pool", "flatten", "linear",
                          "relu", "linear"));
  EXPECT_THAT(Each(costs, &LayerCost::forward_flops),
              ElementsAre(2432, 128, 128, 0, 325, 5, 33));
  EXPECT_THAT(Each(costs, &LayerCost::backward_flops),
              ElementsAre(2432, 128, 32, 0, 645, 5, 63));
  EXPECT_THAT(Each(costs, &LayerCost::parameter_elements),
              ElementsAre(20, 0, 0, 0, 165, 0, 18));
  EXPECT_THAT(Each(costs, &LayerCost::kept_elements),
              ElementsAre(128, 0, 64, 0, 5, 0, 3));
  EXPECT_EQ(costs.layers[2].output_shape, Shape({2, 4, 4}));
  // Two arrays as large as the pool's input.
  EXPECT_EQ(costs.workspace_elements, 256);
}

// One block of dim 4 with 2 heads of 2, 3 positions, 5 tokens. Attention
// forward: projections 2 * 3 * 4 * 16 = 384, biases 48, two products of
// 2 heads * 2 * 3 * 3 * 2 = 72, 18 scores of 10. Backward: 480 + 48 + 5 * 72 +
// 180, and 288 for its input.
TEST(LayerCostsTest, AGptCountsBlocksAndATiedHeadWithoutParameters) {
  const ModelCosts costs = CostsOf(
      "  gpt: {layers: 1, dim: 4, heads: 2, length: 3, vocabulary: 5}", {3});
  EXPECT_THAT(Each(costs, &LayerCost::kind),
              ElementsAre("embedding", "position_embedding", "residual",
                          "residual", "layernorm", "tied_linear"));
  EXPECT_THAT(
      Each(costs, &LayerCost::forward_flops),
      ElementsAre(12, 12, 96 + 756 + 12, 96 + 432 + 480 + 396 + 12, 96, 120));
  EXPECT_THAT(Each(costs, &LayerCost::backward_flops),
              ElementsAre(12, 12, 144 + 1356 + 12, 144 + 816 + 480 + 780 + 12,
                          144, 240));
  EXPECT_THAT(Each(costs, &LayerCost::parameter_elements),
              ElementsAre(20, 12, 88, 156, 8, 0));
  // Ids of eight bytes; positions are added in place; normalizations keep two
  // numbers a position, attention q, k, v, context and 6 sums.
  EXPECT_THAT(Each(costs, &LayerCost::kept_elements),
              ElementsAre(18, 0, 12 + 18 + 66, 12 + 18 + 48 + 48 + 12, 18, 15));
  EXPECT_EQ(costs.layers[3].body[2].kind, "gelu");
  EXPECT_EQ(costs.layers[3].body[2].backward_flops, 480);
  // Two arrays of 12 around, of 12 and of 48 in the blocks, scratch of 48.
  EXPECT_EQ(costs.workspace_elements, 24 + 24 + 96 + 48);
  EXPECT_EQ(costs.parameter_elements(), 284);
}

// 64 numbers of 8 FLOPs forward and 12 backward, and two statistics for each
// of two groups.
TEST(LayerCostsTest, AGroupNormKeepsTheStatisticsOfItsGroups) {
  const ModelCosts costs = CostsOf(R"(
  sequential:
    - conv2d: {in: 1, out: 4, kernel: 1}
    - group_norm: {groups: 2, features: 4})",
                                   {4, 4});
  const LayerCost& norm = costs.layers[1];
  EXPECT_EQ(norm.forward_flops, 64 * 8);
  EXPECT_EQ(norm.backward_flops, 64 * 12);
  EXPECT_EQ(norm.parameter_elements, 8);
  EXPECT_EQ(norm.kept_elements, 64 + 4);
}

// 3 positions of 4 numbers: 4 FLOPs for each number forward and 9 backward. It
// keeps its output of 12 numbers and one number for each position.
TEST(LayerCostsTest, AnRmsNormCostsLessThanALayerNorm) {
  const ModelCosts costs = CostsOf(R"(
  sequential:
    - linear: {in: 4, out: 4}
    - rms_norm: {features: 4})",
                                   {3, 4});
  const LayerCost& norm = costs.layers[1];
  EXPECT_EQ(norm.forward_flops, 12 * 4);
  EXPECT_EQ(norm.backward_flops, 12 * 9);
  EXPECT_EQ(norm.parameter_elements, 4);
  EXPECT_EQ(norm.kept_elements, 12 + 3);
}

// 32 numbers of 8 FLOPs forward, 6 for the parameters and 6 for the input
// backward; 4 tensors, of which two are running averages.
TEST(LayerCostsTest, ABatchNormKeepsItsOutputAndPassesTwiceBack) {
  const ModelCosts costs = CostsOf(R"(
  sequential:
    - conv2d: {in: 1, out: 2, kernel: 1}
    - batch_norm: {features: 2}
    - global_avg_pool
    - linear: {in: 2, out: 2})",
                                   {4, 4});
  const LayerCost& norm = costs.layers[1];
  EXPECT_EQ(norm.forward_flops, 32 * 8);
  EXPECT_EQ(norm.backward_flops, 32 * 12);
  EXPECT_EQ(norm.num_parameters, 4);
  EXPECT_EQ(norm.parameter_elements, 8);
  EXPECT_EQ(norm.kept_elements, 32);
  EXPECT_EQ(CostsOfModel(ModelOf("  sequential: [{batch_norm: {features: 2}}]"),
                         {3, 4, 4})
                .status()
                .message(),
            "layer 0 (batch_norm): wants samples of features = 2 channels or "
            "numbers, gets samples of shape [3, 4, 4]");
}

// Body: 48 outputs of 18 products; shortcut: 48 of 2. Its branches want the
// gradient of the input even in the first layer.
TEST(LayerCostsTest, AResidualCostsItsBranchesAndTheSum) {
  const ModelCosts costs = CostsOf(R"(
  sequential:
    - residual:
        body: [{conv2d: {in: 2, out: 3, kernel: 3, padding: 1}}]
        shortcut: [{conv2d: {in: 2, out: 3, kernel: 1}}]
    - global_avg_pool
    - linear: {in: 3, out: 2})",
                                   {2, 4, 4});
  const LayerCost& residual = costs.layers[0];
  EXPECT_EQ(residual.forward_flops, 1776 + 240 + 48);
  EXPECT_EQ(residual.backward_flops, 1776 + 1728 + 240 + 192 + 32);
  EXPECT_EQ(residual.kept_elements, 3 * 48);
  EXPECT_EQ(residual.num_parameters, 4);
}

// 128 queries see 128 keys and the next 128 see 256.
TEST(LayerCostsTest, CausalAttentionSkipsTheKeysThatNoQueryOfABlockSees) {
  const auto flops = [](bool causal) {
    return CostsOf(absl::StrCat(R"(
  sequential:
    - embedding: {tokens: 4, dim: 2}
    - attention: {dim: 2, heads: 1, causal: )",
                                causal ? "true" : "false", "}"),
                   {256})
        .layers[1]
        .forward_flops;
  };
  // A score is two products of 2 elements and an exponential: 4 + 4 + 10.
  EXPECT_THAT(flops(false) - flops(true), DoubleEq(128 * 128 * 18.0));
}

TEST(LayerCostsTest, DropoutAfterReluHasAnOutputOfItsOwn) {
  const ModelCosts costs =
      CostsOf("  mlp: {in: 4, hidden: [3], out: 2, dropout: 0.5}", {4});
  EXPECT_THAT(Each(costs, &LayerCost::kept_elements), ElementsAre(3, 0, 3, 2));
}

TEST(LayerCostsTest, ALayerThatDoesNotFitIsNamed) {
  const auto error = [](const std::string& model, const Shape& sample) {
    return std::string(CostsOfModel(ModelOf(model), sample).status().message());
  };
  EXPECT_EQ(error("  mlp: {in: 4, hidden: [3], out: 2}", {5}),
            "layer 0 (linear): wants samples whose last extent is in = 4, gets "
            "samples of shape [5]");
  EXPECT_THAT(
      error("  cnn: {image: 8, channels: [2], hidden: 5, classes: 3}", {64}),
      HasSubstr("layer 0 (conv2d): wants samples of shape [channels, "));
  EXPECT_THAT(
      error("  gpt: {layers: 1, dim: 4, heads: 2, length: 3, vocabulary: 5}",
            {4}),
      HasSubstr("layer 1 (position_embedding): "));
  EXPECT_THAT(error("  mlp: {in: 4, hidden: [3], out: 2}", {0}),
              HasSubstr("a sample must have"));
}

TEST(LayerCostsTest, AFirstLinearTakesImagesAsTheyCome) {
  EXPECT_EQ(CostsOf("  mlp: {in: 4, hidden: [3], out: 2}", {2, 2})
                .layers[0]
                .output_shape,
            Shape({3}));
}

}  // namespace
}  // namespace tributary
