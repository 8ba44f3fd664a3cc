// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/unit/worker/train/model/model_fixture.h"

namespace tributary::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr char kMlp[] =
    "sequential { linear { in: 6 out: 5 } } sequential { relu {} }"
    "sequential { linear { in: 5 out: 3 } }";

TEST(ModelTest, NamesAndShapesParametersAsTorchSequentialDoes) {
  CpuModel model(
      "sequential { flatten {} } sequential { linear { in: 6 out: 4 } }"
      "sequential { layernorm { features: 4 } } sequential { relu {} }"
      "sequential { linear { in: 4 out: 2 bias: false } }",
      {2, 3}, 1);
  EXPECT_THAT(
      model->parameters(),
      ElementsAre(ParameterSpec{"1.weight", {4, 6}},
                  ParameterSpec{"1.bias", {4}}, ParameterSpec{"2.weight", {4}},
                  ParameterSpec{"2.bias", {4}},
                  ParameterSpec{"4.weight", {2, 4}}));
  EXPECT_EQ(model->output_shape(), Shape({2}));
}

TEST(ModelTest, ParametersLieInForwardOrderOnCacheLines) {
  CpuModel model(kMlp, {6}, 1);
  for (int p = 0; p < model.num_parameters(); ++p) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(model->weight(p)) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(model->gradient(p)) % 64, 0u);
    if (p == 0) continue;
    // 30 floats take 32, 5 take 16, 15 take 16.
    const int64_t room = (model.Size(p - 1) + 15) / 16 * 16;
    EXPECT_EQ(model->weight(p) - model->weight(p - 1), room);
    EXPECT_EQ(model->gradient(p) - model->gradient(p - 1), room);
  }
}

// y = w2 relu(w1 x + b1) + b2 with w1 = [[1, 2], [-3, 1]], b1 = [.5, 1],
// w2 = [[2, -1]], b2 = [.25]; x = [1, 2]: pre = [5.5, 0], y = 11.25.
// dy = 3: d_w2 = 3 [5.5, 0], d_b2 = 3, d_pre = [6, 0 (the derivative at 0)].
TEST(ModelTest, ForwardAndBackwardMatchNumbersWorkedByHand) {
  CpuModel model(
      "sequential { linear { in: 2 out: 2 } } sequential { relu {} }"
      "sequential { linear { in: 2 out: 1 } }",
      {2}, 1);
  model.SetWeight(0, {1, 2, -3, 1});
  model.SetWeight(1, {.5, 1});
  model.SetWeight(2, {2, -1});
  model.SetWeight(3, {.25});
  const Floats features = {1, 2};
  EXPECT_THAT(model.Forward(features, 1), ElementsAre(11.25f));
  const float dy = 3;
  model->Backward(&dy, /*accumulate=*/false, nullptr);
  EXPECT_THAT(model.Gradient(0), ElementsAre(6, 12, 0, 0));
  EXPECT_THAT(model.Gradient(1), ElementsAre(6, 0));
  EXPECT_THAT(model.Gradient(2), ElementsAre(16.5f, 0));
  EXPECT_THAT(model.Gradient(3), ElementsAre(3));
}

TEST(ModelTest, GradientsBecomeReadyFromTheLastParameterToTheFirst) {
  CpuModel model(
      "sequential { linear { in: 6 out: 4 } } sequential { silu {} }"
      "sequential { layernorm { features: 4 } }"
      "sequential { linear { in: 4 out: 4 bias: false } }"
      "sequential { tanh {} }",
      {6}, 2);
  const Floats features = Noise(12, 1), d_logits = Noise(8, 2);
  model->Forward(features.data(), 2, {});
  std::vector<int> ready;
  model->Backward(d_logits.data(), false, [&](int p) { ready.push_back(p); });
  EXPECT_THAT(ready, ElementsAre(4, 3, 2, 1, 0));
}

constexpr char kEveryParameterKind[] =
    "sequential { linear { in: 6 out: 4 } } sequential { gelu {} }"
    "sequential { layernorm { features: 4 } } sequential { relu {} }"
    "sequential { linear { in: 4 out: 5 } } sequential { sigmoid {} }"
    "sequential { linear { in: 5 out: 3 } }";

// New weights may arrive as soon as a gradient is ready: here they are NaN,
// which any later reader would spread.
TEST(ModelTest, NothingReadsAWeightOnceItsGradientIsReady) {
  CpuModel model(kEveryParameterKind, {6}, 3);
  const Floats features = Noise(18, 1), d_logits = Noise(9, 2);
  model->Forward(features.data(), 3, {});
  model->Backward(d_logits.data(), false, nullptr);
  const std::vector<Floats> expected = model.Gradients();

  model->Forward(features.data(), 3, {});
  model->Backward(d_logits.data(), false, [&](int p) {
    model.SetWeight(p, Floats(static_cast<size_t>(model.Size(p)),
                              std::numeric_limits<float>::quiet_NaN()));
  });
  EXPECT_EQ(model.Gradients(), expected);
}

TEST(ModelTest, AGradientIsCompleteWhenItIsReady) {
  CpuModel model(kEveryParameterKind, {6}, 3);
  const Floats features = Noise(18, 1), d_logits = Noise(9, 2);
  model->Forward(features.data(), 3, {});
  std::vector<Floats> seen(static_cast<size_t>(model.num_parameters()));
  model->Backward(d_logits.data(), false,
                  [&](int p) { seen[p] = model.Gradient(p); });
  EXPECT_EQ(seen, model.Gradients());
}

TEST(ModelTest, AccumulatedMicroBatchesEqualOneBigBatch) {
  CpuModel model(kEveryParameterKind, {6}, 7);
  const Floats features = Noise(7 * 6, 1), d_logits = Noise(7 * 3, 2);
  model->Forward(features.data(), 7, {});
  model->Backward(d_logits.data(), false, nullptr);
  const std::vector<Floats> expected = model.Gradients();

  const int64_t parts[] = {3, 0, 4};
  int64_t row = 0;
  for (int64_t rows : parts) {
    model->Forward(features.data() + row * 6, rows, {});
    model->Backward(d_logits.data() + row * 3, /*accumulate=*/row > 0, nullptr);
    row += rows;
  }
  for (int p = 0; p < model.num_parameters(); ++p) {
    EXPECT_THAT(model.Gradient(p), Pointwise(FloatNear(2e-6f), expected[p]))
        << model->parameters()[p].name;
  }
}

TEST(ModelTest, ABatchWithoutRowsHasZeroGradients) {
  CpuModel model(kEveryParameterKind, {6}, 2);
  const Floats features = Noise(12, 1), d_logits = Noise(6, 2);
  model->Forward(features.data(), 2, {});
  model->Backward(d_logits.data(), false, nullptr);
  model->Forward(features.data(), 0, {});
  model->Backward(d_logits.data(), false, nullptr);
  for (const Floats& gradient : model.Gradients()) {
    EXPECT_EQ(gradient, Floats(gradient.size(), 0.0f));
  }
}

TEST(ModelTest, LeavesFeaturesAndLossGradientAsTheyWere) {
  CpuModel model(
      "sequential { relu {} } sequential { dropout { p: 0.5 } }"
      "sequential { linear { in: 6 out: 3 } } sequential { dropout {} }"
      "sequential { sigmoid {} }",
      {6}, 2);
  const Floats features = Noise(12, 1), d_logits = Noise(6, 2);
  const Floats features_before = features, d_logits_before = d_logits;
  model->Forward(features.data(), 2, {.training = true});
  model->Backward(d_logits.data(), false, nullptr);
  EXPECT_EQ(features, features_before);
  EXPECT_EQ(d_logits, d_logits_before);
}

TEST(ModelTest, LinearWorksOnTheLastExtentOfASample) {
  CpuModel wide("sequential { linear { in: 3 out: 2 } }", {4, 3}, 2);
  CpuModel flat("sequential { linear { in: 3 out: 2 } }", {3}, 8);
  EXPECT_EQ(wide->output_shape(), Shape({4, 2}));
  const Floats features = Noise(24, 1), d_logits = Noise(16, 2);
  EXPECT_EQ(wide.Forward(features, 2), flat.Forward(features, 8));
  wide->Backward(d_logits.data(), false, nullptr);
  flat->Backward(d_logits.data(), false, nullptr);
  EXPECT_EQ(wide.Gradients(), flat.Gradients());
}

TEST(ModelTest, TheFirstLinearTakesImagesWithoutAFlatten) {
  CpuModel image("sequential { linear { in: 6 out: 2 } }", {2, 3}, 1);
  CpuModel flat("sequential { linear { in: 6 out: 2 } }", {6}, 1);
  const Floats features = Noise(6, 1);
  EXPECT_EQ(image.Forward(features, 1), flat.Forward(features, 1));
}

}  // namespace
}  // namespace tributary::testing
