// SPDX-License-Identifier: Apache-2.0
// The duties of a batch norm besides its arithmetic, which tests/unit/kernels
// checks: which statistics it takes, and what it leaves for the running ones.
#include "tests/unit/worker/train/model/model_fixture.h"

namespace tributary::testing {
namespace {

constexpr char kNormLayers[] =
    "sequential { batch_norm { features: 2 epsilon: 1e-9 momentum: 0.5 } }";
enum { kWeight, kBias, kMean, kVariance };

// Two features: means 2 and 10, variances 1 and 4 (unbiased 2 and 8).
const Floats kTwoFeatures = {1, 8, 3, 12};
const ForwardContext kWhileTraining = {.training = true};

// Weight 1, bias 0, running mean 1 and variance 4.
class BatchNormTest : public ::testing::Test {
 protected:
  BatchNormTest() : model_(kNormLayers, {2}, 4) {
    model_.SetWeight(kWeight, {1, 1});
    model_.SetWeight(kBias, {0, 0});
    model_.SetWeight(kMean, {1, 1});
    model_.SetWeight(kVariance, {4, 4});
  }

  void Train(const Floats& batch, bool accumulate = false,
             double step_share = 1) {
    const auto rows = static_cast<int64_t>(batch.size()) / 2;
    ForwardContext context = kWhileTraining;
    context.step_share = step_share;
    model_.Forward(batch, rows, context);
    const Floats dy(batch.size(), 1.0f);
    model_->Backward(dy.data(), accumulate, nullptr);
  }

  CpuModel model_;
};

TEST_F(BatchNormTest, ItsParametersAreNamedAndMarkedAsPyTorchHasThem) {
  std::vector<std::string> names;
  std::vector<double> momenta;
  for (const ParameterSpec& parameter : model_->parameters()) {
    names.push_back(parameter.name);
    momenta.push_back(parameter.running_momentum);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"0.weight", "0.bias", "0.running_mean",
                                      "0.running_var"}));
  EXPECT_EQ(momenta, (std::vector<double>{0, 0, 0.5, 0.5}));
}

TEST_F(BatchNormTest, TrainingNormalizesByTheBatchEvaluationByTheRunning) {
  const Floats training = model_.Forward(kTwoFeatures, 2, kWhileTraining);
  for (const auto& [i, y] :
       {std::pair(0, -1.0f), {1, -1.0f}, {2, 1.0f}, {3, 1.0f}}) {
    EXPECT_FLOAT_EQ(training[i], y);
  }
  // (x - 1) / 2
  EXPECT_EQ(model_.Forward(kTwoFeatures, 2), (Floats{0, 3.5f, 1, 5.5f}));
}

TEST_F(BatchNormTest, TheBatchsMeanAndUnbiasedVarianceComeAsGradients) {
  Train(kTwoFeatures);
  EXPECT_EQ(model_.Gradient(kMean), (Floats{2, 10}));
  EXPECT_EQ(model_.Gradient(kVariance), (Floats{2, 8}));
  EXPECT_EQ(model_->weight(kMean)[0], 1) << "an update moves it, not the layer";
}

// 3/4 of the samples with mean 2, 1/4 with mean 6.
TEST_F(BatchNormTest, MicroBatchesCountBySamples) {
  Train({1, 1, 2, 2, 3, 3}, false, 0.75);
  Train({6, 6}, true, 0.25);
  EXPECT_EQ(model_.Gradient(kMean), (Floats{3, 3}));
  // 3/4 of the variance 1, and for the sample alone 1/4 of the running 4.
  EXPECT_EQ(model_.Gradient(kVariance), (Floats{1.75f, 1.75f}));
  Train(kTwoFeatures);
  EXPECT_EQ(model_.Gradient(kMean), (Floats{2, 10})) << "a new step";
}

TEST_F(BatchNormTest, ASampleAloneBecomesTheBiasAndHasNoVariance) {
  model_.SetWeight(kBias, {7, 8});
  EXPECT_EQ(model_.Forward({5, 6}, 1, kWhileTraining), (Floats{7, 8}));
  Train({5, 6});
  EXPECT_EQ(model_.Gradient(kVariance), (Floats{4, 4}));
}

TEST_F(BatchNormTest, SamplesOfOtherShapesAreRefused) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  for (const Shape& shape :
       {Shape{3}, Shape{3, 2}, Shape{4, 2, 2}, Shape{2, 2, 2, 2}}) {
    const auto refused =
        Model::Create(FromText<v1::ModelSpec>(kNormLayers), shape,
                      {.ops = ops.get(), .max_rows = 1});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().message().substr(0, 20), "layer 0 (batch_norm)");
  }
}

}  // namespace
}  // namespace tributary::testing
