// SPDX-License-Identifier: Apache-2.0
// Every layer's backward pass against finite differences of its forward pass.
#include <algorithm>
#include <cmath>

#include "tests/unit/worker/train/model/model_fixture.h"

namespace tributary::testing {
namespace {

constexpr int64_t kRows = 5;

// A linear function of the logits, in double.
double Objective(CpuModel& model, const Floats& features,
                 const Floats& d_logits, const ForwardContext& context) {
  const Floats logits = model.Forward(features, kRows, context);
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    sum += double{logits[i]} * double{d_logits[i]};
  }
  return sum;
}

// float32 leaves about 1e-6 of the objective; divided by the step, 1e-3 of it.
// The seed of the features is one that keeps relu away from its kink.
void ExpectGradientsOf(const std::string& layers, const Shape& sample_shape,
                       uint64_t feature_seed = 1) {
  CpuModel model(layers, sample_shape, kRows);
  const ForwardContext context = {.training = true, .step = 3};
  const Floats features =
      Noise(kRows * NumElements(sample_shape), feature_seed);
  const Floats d_logits = Noise(kRows * model->output_size(), 2);
  model->Forward(features.data(), kRows, context);
  model->Backward(d_logits.data(), /*accumulate=*/false, nullptr);
  const std::vector<Floats> gradients = model.Gradients();

  constexpr float kStep = 2e-3f;
  double largest = 0, worst = 0;
  for (int p = 0; p < model.num_parameters(); ++p) {
    if (model->parameters()[p].is_running()) continue;  // no gradient comes
    for (int64_t i = 0; i < model.Size(p); ++i) {
      float& weight = model->weight(p)[i];
      const float before = weight;
      weight = before + kStep;
      const double above = Objective(model, features, d_logits, context);
      const double width_above = double{weight} - double{before};
      weight = before - kStep;
      const double below = Objective(model, features, d_logits, context);
      const double width = width_above + double{before} - double{weight};
      weight = before;
      const double expected = (above - below) / width;
      const double error = std::abs(gradients[p][i] - expected);
      EXPECT_LT(error, 3e-3)
          << model->parameters()[p].name << " element " << i << ": got "
          << gradients[p][i] << ", expected " << expected;
      worst = std::max(worst, error);
      largest = std::max(largest, std::abs(expected));
    }
  }
  EXPECT_GT(largest, 0.1) << "the check would not notice missing gradients";
  std::printf("[ gradient ] worst error %.1e, largest gradient %.2f\n", worst,
              largest);
}

TEST(GradientCheckTest, AStackOfEveryLayer) {
  ExpectGradientsOf(
      "sequential { flatten {} } sequential { layernorm { features: 12 } }"
      "sequential { linear { in: 12 out: 7 } } sequential { relu {} }"
      "sequential { linear { in: 7 out: 8 } } sequential { gelu {} }"
      "sequential { dropout { p: 0.3 } }"
      "sequential { linear { in: 8 out: 6 bias: false } }"
      "sequential { gelu { approximate: TANH } }"
      "sequential { layernorm { features: 6 } } sequential { silu {} }"
      "sequential { linear { in: 6 out: 5 } } sequential { tanh {} }"
      "sequential { linear { in: 5 out: 4 } } sequential { sigmoid {} }"
      "sequential { linear { in: 4 out: 3 } }",
      {3, 4});
}

// Chains of layers that could write over one another's arrays.
TEST(GradientCheckTest, ReluThenDropout) {
  ExpectGradientsOf(
      "sequential { linear { in: 6 out: 9 } } sequential { relu {} }"
      "sequential { dropout { p: 0.4 } } sequential { linear { in: 9 out: 4 } "
      "}",
      {6}, /*feature_seed=*/4);
}

TEST(GradientCheckTest, SigmoidThenFlattenThenDropoutThenTanh) {
  ExpectGradientsOf(
      "sequential { linear { in: 3 out: 5 } } sequential { sigmoid {} }"
      "sequential { flatten {} } sequential { dropout { p: 0.4 } }"
      "sequential { tanh {} }",
      {2, 3});
}

TEST(GradientCheckTest, DropoutThenDropoutThenSiluThenDropout) {
  ExpectGradientsOf(
      "sequential { linear { in: 4 out: 6 } } sequential { dropout { p: 0.2 } }"
      "sequential { dropout { p: 0.3 } } sequential { silu {} }"
      "sequential { dropout { p: 0.2 } } sequential { tanh {} }",
      {4});
}

TEST(GradientCheckTest, TwoLinearsWithoutAnythingBetween) {
  ExpectGradientsOf(
      "sequential { dropout { p: 0.2 } } sequential { tanh {} }"
      "sequential { linear { in: 4 out: 6 } }"
      "sequential { linear { in: 6 out: 3 } }",
      {4});
}

TEST(GradientCheckTest, ConvolutionsAndPools) {
  ExpectGradientsOf(
      "sequential { conv2d { in: 2 out: 4 kernel: 3 padding: 1 groups: 2 } }"
      "sequential { tanh {} }"
      "sequential { max_pool { kernel: 3 stride: 2 padding: 1 } }"
      "sequential { conv2d { in: 4 out: 3 kernel: 2 kernel: 1 stride: 1 "
      "stride: 2 padding: 1 padding: 0 dilation: 2 dilation: 1 bias: false } }"
      "sequential { avg_pool { kernel: 2 padding: 1 count_include_pad: false } "
      "} sequential { sigmoid {} } sequential { global_avg_pool {} }"
      "sequential { linear { in: 3 out: 2 } }",
      {2, 7, 6});
}

// A shortcut of its own, and a residual as the first layer with parameters.
TEST(GradientCheckTest, AResidualWithAShortcutOfConvolutions) {
  ExpectGradientsOf(
      "sequential { residual {"
      "  body { conv2d { in: 1 out: 3 kernel: 3 padding: 1 stride: 2 } }"
      "  body { tanh {} }"
      "  body { conv2d { in: 3 out: 3 kernel: 3 padding: 1 } }"
      "  shortcut { conv2d { in: 1 out: 3 kernel: 1 stride: 2 } } } }"
      "sequential { sigmoid {} } sequential { flatten {} }"
      "sequential { linear { in: 27 out: 2 } }",
      {5, 5});
}

// The layer in front of a residual has an output that must stay as it is for
// the residual; in the body a dropout may pass its input through.
TEST(GradientCheckTest, ResidualsWithinResiduals) {
  ExpectGradientsOf(
      "sequential { linear { in: 4 out: 6 } } sequential { tanh {} }"
      "sequential { residual {"
      "  body { dropout { p: 0.3 } }"
      "  body { residual { body { linear { in: 6 out: 6 } } body { tanh {} } } "
      "}"
      "  body { silu {} } } }"
      "sequential { relu {} } sequential { linear { in: 6 out: 2 } }",
      {4}, /*feature_seed=*/3);
}

TEST(GradientCheckTest, BatchNormsOfFeaturesAndOfImages) {
  ExpectGradientsOf(
      "sequential { batch_norm { features: 2 } }"
      "sequential { conv2d { in: 2 out: 3 kernel: 3 padding: 1 bias: false } }"
      "sequential { batch_norm { features: 3 } } sequential { tanh {} }"
      "sequential { flatten {} } sequential { linear { in: 36 out: 4 } }"
      "sequential { batch_norm { features: 4 epsilon: 0.1 } }"
      "sequential { silu {} } sequential { linear { in: 4 out: 2 } }",
      {2, 4, 3});
}

TEST(GradientCheckTest, GroupNormsOfFeaturesAndOfImages) {
  ExpectGradientsOf(
      "sequential { group_norm { groups: 1 features: 2 } }"
      "sequential { conv2d { in: 2 out: 6 kernel: 3 padding: 1 bias: false } }"
      "sequential { group_norm { groups: 3 features: 6 } } sequential { tanh "
      "{} } sequential { group_norm { groups: 2 features: 6 affine: false } }"
      "sequential { flatten {} } sequential { linear { in: 72 out: 4 } }"
      "sequential { group_norm { groups: 2 features: 4 epsilon: 0.1 } }"
      "sequential { silu {} } sequential { linear { in: 4 out: 2 } }",
      {2, 4, 3});
}

TEST(GradientCheckTest, RmsNormsOfFeaturesAndOfSequences) {
  ExpectGradientsOf(
      "sequential { rms_norm { features: 4 } }"
      "sequential { residual { body { rms_norm { features: 4 epsilon: 0.1 } }"
      "  body { linear { in: 4 out: 4 } } body { tanh {} } } }"
      "sequential { flatten {} } sequential { linear { in: 12 out: 5 } }"
      "sequential { rms_norm { features: 5 } } sequential { silu {} }"
      "sequential { linear { in: 5 out: 2 } }",
      {3, 4});
}

TEST(GradientCheckTest, AttentionWithPositionsShorterThanTheirTable) {
  ExpectGradientsOf(
      "sequential { position_embedding { length: 5 dim: 6 } }"
      "sequential { attention { dim: 6 heads: 2 causal: true } }"
      "sequential { residual { body { layernorm { features: 6 } }"
      "  body { attention { dim: 6 heads: 3 qkv_bias: false } } } }"
      "sequential { linear { in: 6 out: 3 } }",
      {3, 6});
}

}  // namespace
}  // namespace tributary::testing
