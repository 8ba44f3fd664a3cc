// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/loss.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/model/model_fixture.h"

namespace tributary::testing {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class CpuLoss {
 public:
  CpuLoss(const std::string& spec, int64_t outputs) : ops_(CreateCpuOps()) {
    auto loss =
        Loss::Create(FromText<v1::LossSpec>(spec),
                     {.ops = ops_.get(), .max_rows = 8, .outputs = outputs});
    status_ = loss.status();
    if (loss.ok()) loss_ = *std::move(loss);
  }

  const absl::Status& status() const { return status_; }
  Loss* operator->() { return loss_.get(); }

  // The gradient; the summed loss goes to *sum.
  Floats Differentiate(const Floats& logits, const LossTargets& targets,
                       int64_t rows, double scale, double* sum) {
    const auto gradient =
        loss_->Differentiate(logits.data(), targets, rows, scale);
    EXPECT_TRUE(gradient.ok()) << gradient.status();
    const auto summed = loss_->Sum();
    EXPECT_TRUE(summed.ok()) << summed.status();
    *sum = *summed;
    return Floats(*gradient, *gradient + logits.size());
  }

 private:
  std::unique_ptr<Ops> ops_;
  absl::Status status_;
  std::unique_ptr<Loss> loss_;
};

// softmax of (ln 1, ln 2, ln 5) is (1, 2, 5) / 8: the losses of labels 2 and 0
// are ln(8/5) and ln 8.
TEST(LossTest, CrossEntropyMatchesNumbersWorkedByHand) {
  CpuLoss loss("cross_entropy {}", 3);
  const float l2 = std::log(2.0f), l5 = std::log(5.0f);
  const int64_t labels[] = {2, 0};
  double sum = 0;
  const Floats gradient = loss.Differentiate(
      {0, l2, l5, 0, l2, l5}, {.labels = labels}, 2, /*scale=*/0.5, &sum);
  EXPECT_NEAR(sum, std::log(8.0 / 5) + std::log(8.0), 1e-6);
  const Floats expected = {.0625, .125, -.1875, -.4375, .125, .3125};
  EXPECT_THAT(gradient, Pointwise(FloatNear(1e-7f), expected));
}

// With smoothing .3 and 3 classes the target is .8 for the label, .1 for the
// others: loss = ln 8 - .1 ln 2 - .8 ln 5 for label 2.
TEST(LossTest, LabelSmoothingSpreadsTheTarget) {
  CpuLoss loss("cross_entropy { label_smoothing: 0.3 }", 3);
  const float l2 = std::log(2.0f), l5 = std::log(5.0f);
  const int64_t labels[] = {2};
  double sum = 0;
  const Floats gradient =
      loss.Differentiate({0, l2, l5}, {.labels = labels}, 1, 1, &sum);
  EXPECT_NEAR(sum, std::log(8.0) - .1 * std::log(2.0) - .8 * std::log(5.0),
              1e-6);
  const Floats expected = {.025, .15, -.175};
  EXPECT_THAT(gradient, Pointwise(FloatNear(1e-7f), expected));
}

// The losses of each row and the gradient of their mean, from PyTorch 2.15's
// cross_entropy with weight and reduction "none", and scale 1 / 2: the mean is
// over the rows and not over their weights.
TEST(LossTest, ClassWeightsMultiplyTheLossOfEachSampleAsInPyTorch) {
  const Floats logits = {0.5f, -1.25f, 2.0f, 1.0f, 0.0f, -0.5f};
  const int64_t labels[] = {2, 0};
  const std::string weights = "class_weights: [0.5, 3, 2] ";
  CpuLoss plain("cross_entropy { " + weights + "}", 3);
  double sum = 0;
  Floats gradient =
      plain.Differentiate(logits, {.labels = labels}, 2, 0.5, &sum);
  EXPECT_NEAR(sum, 0.46524396538734436 + 0.23218439519405365, 1e-6);
  Floats expected = {0.17682017385959625f,  0.03072674199938774f,
                     -0.20754694938659668f, -0.09286707639694214f,
                     0.057805970311164856f, 0.03506109490990639f};
  EXPECT_THAT(gradient, Pointwise(FloatNear(1e-7f), expected));

  CpuLoss smoothed("cross_entropy { " + weights + "label_smoothing: 0.3 }", 3);
  gradient = smoothed.Differentiate(logits, {.labels = labels}, 2, 0.5, &sum);
  EXPECT_NEAR(sum, 1.503612995147705 + 1.0179319381713867, 1e-6);
  expected = {0.1473996788263321f,    -0.12004142999649048f,
              -0.027358269318938255f, 0.08283927291631699f,
              -0.04594925418496132f,  -0.03689002990722656f};
  EXPECT_THAT(gradient, Pointwise(FloatNear(1e-7f), expected));
}

// Two positions: the weights 1 and 3 of their classes, and ln 2 for each.
TEST(LossTest, OfASequenceEachPositionHasTheWeightOfItsClass) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const auto loss = Loss::Create(
      FromText<v1::LossSpec>("cross_entropy { class_weights: [1, 3] }"),
      {.ops = ops.get(), .max_rows = 1, .outputs = 2, .positions = 2});
  TRIBUTARY_ASSERT_OK(loss);
  const float logits[] = {0, 0, 0, 0};
  const int64_t labels[] = {0, 1};
  TRIBUTARY_EXPECT_OK((*loss)->Evaluate(logits, {.labels = labels}, 1));
  EXPECT_NEAR(*(*loss)->Sum(), (1 + 3) * std::log(2.0) / 2, 1e-6);
}

TEST(LossTest, ClassWeightsThatDoNotFitAreRefused) {
  EXPECT_THAT(CpuLoss("cross_entropy { class_weights: [1, 2] }", 3).status(),
              StatusIs(kInvalid,
                       "class_weights has 2 values, wanted one for each of the "
                       "model's 3 outputs"));
  EXPECT_THAT(CpuLoss("cross_entropy { class_weights: [1, -2] }", 2).status(),
              StatusIs(kInvalid, "not negative, got -2"));
  EXPECT_THAT(CpuLoss("cross_entropy { balanced: true }", 2).status(),
              StatusIs(kInvalid, "wants class_weights in place of balanced"));
}

// sigmoid(ln 3) = 3/4. Positive: pos_weight ln(4/3), gradient -pos_weight / 4;
// negative: ln 4, gradient 3/4.
TEST(LossTest, BinaryCrossEntropyWeighsPositives) {
  CpuLoss loss("bce_with_logits { pos_weight: 2 }", 1);
  const float l3 = std::log(3.0f);
  const float targets[] = {1, 0};
  double sum = 0;
  const Floats gradient =
      loss.Differentiate({l3, l3}, {.values = targets}, 2, 1, &sum);
  EXPECT_NEAR(sum, 2 * std::log(4.0 / 3) + std::log(4.0), 1e-6);
  EXPECT_THAT(gradient, Pointwise(FloatNear(1e-6f), Floats{-.5, .75}));
}

TEST(LossTest, SquaredErrorIsTheMeanOverASamplesOutputs) {
  CpuLoss loss("mse {}", 2);
  const float targets[] = {1, 2, 3, 4};
  double sum = 0;
  const Floats gradient = loss.Differentiate({2, 2, 0, 8}, {.values = targets},
                                             2, /*scale=*/0.5, &sum);
  EXPECT_DOUBLE_EQ(sum, (1 + 0) / 2.0 + (9 + 16) / 2.0);
  EXPECT_THAT(gradient, Pointwise(FloatNear(0), Floats{.5, 0, -1.5, 2}));
}

// One addition in float would lose the small losses after 2^24.
TEST(LossTest, SumsInDouble) {
  CpuLoss loss("mse {}", 1);
  const float targets[] = {0, 0, 0};
  const float logits[] = {4096, 0.5, 0.5};
  TRIBUTARY_EXPECT_OK(loss->Evaluate(logits, {.values = targets}, 3));
  EXPECT_EQ(*loss->Sum(), 16777216.5);
}

TEST(LossTest, EvaluationAndTrainingSeeTheSameLoss) {
  CpuLoss loss("cross_entropy {}", 10);
  const Floats logits = Noise(80, 4);
  const int64_t labels[] = {0, 9, 3, 4, 4, 1, 7, 2};
  double trained = 0;
  loss.Differentiate(logits, {.labels = labels}, 8, 0.125, &trained);
  TRIBUTARY_EXPECT_OK(loss->Evaluate(logits.data(), {.labels = labels}, 8));
  EXPECT_EQ(*loss->Sum(), trained);
}

TEST(LossTest, ABatchWithoutRowsAddsNothing) {
  CpuLoss loss("cross_entropy {}", 3);
  TRIBUTARY_EXPECT_OK(loss->Evaluate(nullptr, {}, 0));
  EXPECT_EQ(*loss->Sum(), 0);
}

TEST(LossTest, LabelsOutsideTheOutputsAreRefused) {
  CpuLoss loss("cross_entropy {}", 3);
  const Floats logits(6, 0.0f);
  for (const int64_t wrong : {int64_t{3}, int64_t{-1}, int64_t{1} << 40}) {
    const int64_t labels[] = {0, wrong};
    EXPECT_THAT(loss->Differentiate(logits.data(), {.labels = labels}, 2, 1),
                StatusIs(kInvalid,
                         "cross_entropy wants labels from 0 to 2, one for "
                         "each output of the model; got " +
                             std::to_string(wrong)));
  }
}

TEST(LossTest, TargetsOfTheWrongKindAreRefused) {
  const Floats logits(2, 0.0f);
  const int64_t labels[] = {0};
  const float values[] = {0};
  CpuLoss classes("cross_entropy {}", 2);
  EXPECT_THAT(classes->Evaluate(logits.data(), {.values = values}, 1),
              StatusIs(kInvalid, "wants a class for each sample"));
  CpuLoss numbers("mse {}", 1);
  EXPECT_THAT(numbers->Evaluate(logits.data(), {.labels = labels}, 1),
              StatusIs(kInvalid, "wants a number for each output"));
}

TEST(LossTest, ConstantsOutOfRangeAreRefused) {
  EXPECT_THAT(CpuLoss("", 1).status(), StatusIs(kInvalid, "got none"));
  EXPECT_THAT(
      CpuLoss("cross_entropy { label_smoothing: 1.5 }", 2).status(),
      StatusIs(kInvalid, "label_smoothing must be from 0 to 1, got 1.5"));
  EXPECT_THAT(CpuLoss("bce_with_logits { pos_weight: 0 }", 1).status(),
              StatusIs(kInvalid, "pos_weight must be positive and finite"));
}

}  // namespace
}  // namespace tributary::testing
