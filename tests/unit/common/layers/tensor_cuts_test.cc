// SPDX-License-Identifier: Apache-2.0
#include "common/layers/tensor_cuts.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/layers/model_parameters.h"

namespace tributary {
namespace {

v1::ModelSpec Model(const std::vector<std::string>& layers) {
  v1::ModelSpec model;
  for (const std::string& layer : layers) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        layer, model.add_sequential()))
        << layer;
  }
  ResolveLayers(&model);
  return model;
}

std::string Linear(int in, int out) {
  return "linear { in: " + std::to_string(in) + " out: " + std::to_string(out) +
         " }";
}

TEST(TensorCutsTest, LinearLayersWithElementwiseOnesBetweenMakeAPair) {
  const v1::ModelSpec model =
      Model({Linear(64, 32), "gelu {}", "dropout {}", Linear(32, 10)});
  const TensorCuts cuts(model, 2, /*cut_logits=*/true);
  EXPECT_EQ(cuts.CutOf("0"), LayerCut::kColumns);
  EXPECT_EQ(cuts.CutOf("1"), LayerCut::kWithin);
  EXPECT_EQ(cuts.CutOf("2"), LayerCut::kWithin);
  EXPECT_EQ(cuts.CutOf("3"), LayerCut::kRows);
  EXPECT_EQ(cuts.ExtentOf("2"), 32);
  EXPECT_EQ(cuts.cut_outputs(), 0);  // the sums are whole
  EXPECT_EQ(cuts.SliceOf("0.weight", 1),
            (ParameterSlice{.dim = 0, .begin = 16, .end = 32}));
  EXPECT_EQ(cuts.SliceOf("0.bias", 1),
            (ParameterSlice{.dim = 0, .begin = 16, .end = 32}));
  EXPECT_EQ(cuts.SliceOf("3.weight", 0),
            (ParameterSlice{.dim = 1, .begin = 0, .end = 16}));
  EXPECT_EQ(cuts.SliceOf("3.bias", 0), ParameterSlice());
}

TEST(TensorCutsTest, ALayerBelongsToOnePair) {
  const TensorCuts cuts(
      Model({Linear(8, 64), "relu {}", Linear(64, 64), "relu {}",
             Linear(64, 64), "relu {}", Linear(64, 10)}),
      4, true);
  EXPECT_EQ(cuts.CutOf("2"), LayerCut::kRows);
  EXPECT_EQ(cuts.CutOf("3"), LayerCut::kWhole);
  EXPECT_EQ(cuts.CutOf("4"), LayerCut::kColumns);
  EXPECT_EQ(cuts.CutOf("6"), LayerCut::kRows);
}

TEST(TensorCutsTest, ALoneLinearLayerIsGatheredIfItIsWideEnough) {
  for (const int out : {63, 64}) {
    const TensorCuts cuts(
        Model({Linear(8, out), "layernorm { features: 64 }", Linear(64, 64)}),
        4, false);
    EXPECT_EQ(cuts.CutOf("0"),
              out == 64 ? LayerCut::kGatherColumns : LayerCut::kWhole);
    EXPECT_EQ(cuts.CutOf("1"), LayerCut::kWhole);
    EXPECT_EQ(cuts.CutOf("2"), LayerCut::kGatherColumns);
    EXPECT_EQ(cuts.cut_outputs(), 0);
  }
}

TEST(TensorCutsTest, AFlattenMixesFeaturesSoItEndsThePair) {
  const TensorCuts cuts(Model({Linear(8, 8), "flatten {}", Linear(8, 8)}), 2,
                        false);
  EXPECT_EQ(cuts.CutOf("0"), LayerCut::kWhole);
  EXPECT_EQ(cuts.CutOf("2"), LayerCut::kWhole);
}

TEST(TensorCutsTest, FewerFeaturesThanRanksStayWhole) {
  const TensorCuts cuts(Model({Linear(8, 3), "relu {}", Linear(3, 8)}), 4,
                        false);
  EXPECT_EQ(cuts.CutOf("0"), LayerCut::kWhole);
  EXPECT_EQ(cuts.CutOf("2"), LayerCut::kWhole);
}

const std::vector<std::string> kGptLayers = {
    "embedding { tokens: 65 dim: 8 }",
    "position_embedding { length: 4 dim: 8 }",
    "residual { body { layernorm { features: 8 } } body { attention { dim: 8 "
    "heads: 4 } } }",
    "residual { body { layernorm { features: 8 } } body { linear { in: 8 out: "
    "32 } } body { gelu {} } body { linear { in: 32 out: 8 } } }",
    "layernorm { features: 8 }",
    "tied_linear { to: \"0.weight\" }"};

TEST(TensorCutsTest, ATransformerIsCutAsMegatronCutsIt) {
  const TensorCuts cuts(Model(kGptLayers), 4, true);
  EXPECT_EQ(cuts.CutOf("0"), LayerCut::kVocabulary);
  EXPECT_EQ(cuts.CutOf("1"), LayerCut::kWhole);
  EXPECT_EQ(cuts.CutOf("2"), LayerCut::kWhole);
  EXPECT_EQ(cuts.CutOf("2.body.0"), LayerCut::kWhole);
  EXPECT_EQ(cuts.CutOf("2.body.1"), LayerCut::kHeads);
  EXPECT_EQ(cuts.CutOf("3.body.1"), LayerCut::kColumns);
  EXPECT_EQ(cuts.CutOf("3.body.2"), LayerCut::kWithin);
  EXPECT_EQ(cuts.CutOf("3.body.3"), LayerCut::kRows);
  EXPECT_EQ(cuts.CutOf("5"), LayerCut::kColumns);
  EXPECT_EQ(cuts.cut_outputs(), 65);
  // floor(65 r / 4): 0, 16, 32, 48, 65.
  EXPECT_EQ(cuts.SliceOf("0.weight", 3),
            (ParameterSlice{.dim = 0, .begin = 48, .end = 65}));
  EXPECT_EQ(cuts.SliceOf("2.body.1.in_proj_weight", 1),
            (ParameterSlice{.dim = 0, .begin = 2, .end = 4, .groups = 3}));
  EXPECT_EQ(cuts.SliceOf("2.body.1.in_proj_bias", 1),
            (ParameterSlice{.dim = 0, .begin = 2, .end = 4, .groups = 3}));
  EXPECT_EQ(cuts.SliceOf("2.body.1.out_proj.weight", 1),
            (ParameterSlice{.dim = 1, .begin = 2, .end = 4}));
  EXPECT_EQ(cuts.SliceOf("2.body.1.out_proj.bias", 1), ParameterSlice());
  EXPECT_EQ(cuts.SliceOf("2.body.0.weight", 1), ParameterSlice());
  EXPECT_EQ(cuts.SliceOf("4.weight", 1), ParameterSlice());
}

TEST(TensorCutsTest, AHeadWhoseLogitsTheLossTakesWholeIsGathered) {
  const TensorCuts cuts(Model(kGptLayers), 4, false);
  EXPECT_EQ(cuts.CutOf("5"), LayerCut::kGatherColumns);
  EXPECT_EQ(cuts.cut_outputs(), 0);
}

TEST(TensorCutsTest, AHeadOfItsOwnStaysCutToo) {
  std::vector<std::string> layers = kGptLayers;
  layers.back() = "linear { in: 8 out: 65 bias: false }";
  const TensorCuts cuts(Model(layers), 2, true);
  EXPECT_EQ(cuts.CutOf("5"), LayerCut::kColumns);
  EXPECT_EQ(cuts.cut_outputs(), 65);
  EXPECT_EQ(cuts.SliceOf("5.weight", 1),
            (ParameterSlice{.dim = 0, .begin = 32, .end = 65}));
}

TEST(TensorCutsTest, OneRankCutsNothing) {
  const TensorCuts cuts(Model(kGptLayers), 1, true);
  EXPECT_EQ(cuts.CutOf("0"), LayerCut::kWhole);
  EXPECT_EQ(cuts.cut_outputs(), 0);
}

// Every element of a parameter belongs to some rank, and every element of a cut
// parameter to exactly one rank.
TEST(TensorCutsTest, SlicesCoverEveryParameter) {
  const v1::ModelSpec model = Model(kGptLayers);
  for (const int ranks : {1, 2, 4}) {
    const TensorCuts cuts(model, ranks, true);
    for (const ParameterSpec& parameter : ModelParameters(model)) {
      std::vector<float> whole(parameter.size());
      std::iota(whole.begin(), whole.end(), 1.0f);
      std::vector<float> again(whole.size());
      int64_t held = 0;
      bool cut = false;
      for (int rank = 0; rank < ranks; ++rank) {
        const ParameterSlice slice = cuts.SliceOf(parameter.name, rank);
        std::vector<float> part(
            NumElements(ShapeOfSlice(parameter.shape, slice)));
        SliceParameter(parameter.shape, slice, whole.data(), part.data());
        PlaceSlice(parameter.shape, slice, part.data(), again.data());
        held += static_cast<int64_t>(part.size());
        cut = cut || !slice.whole();
      }
      EXPECT_EQ(again, whole) << parameter.name;
      EXPECT_EQ(held, cut ? parameter.size() : ranks * parameter.size());
    }
  }
}

TEST(ParameterSliceTest, TheThreeRunsOfAnInputProjectionAreCutAlike) {
  // [6, 2], three groups of two rows: the second row of each.
  const Shape shape = {6, 2};
  const ParameterSlice slice = {.dim = 0, .begin = 1, .end = 2, .groups = 3};
  std::vector<float> whole(12), part(6);
  std::iota(whole.begin(), whole.end(), 0.0f);
  EXPECT_EQ(ShapeOfSlice(shape, slice), (Shape{3, 2}));
  SliceParameter(shape, slice, whole.data(), part.data());
  EXPECT_EQ(part, (std::vector<float>{2, 3, 6, 7, 10, 11}));
}

TEST(ParameterSliceTest, ColumnsOfAMatrixAreShortRuns) {
  const Shape shape = {2, 3};
  const ParameterSlice slice = {.dim = 1, .begin = 1, .end = 3};
  const std::vector<float> whole = {0, 1, 2, 3, 4, 5};
  std::vector<float> part(4);
  SliceParameter(shape, slice, whole.data(), part.data());
  EXPECT_EQ(part, (std::vector<float>{1, 2, 4, 5}));
}

}  // namespace
}  // namespace tributary
