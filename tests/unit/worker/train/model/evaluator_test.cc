// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/evaluator.h"

#include <gmock/gmock.h>

#include <cmath>

#include "common/evaluation/evaluation.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/model/model_fixture.h"

namespace tributary::testing {
namespace {

// A model that hands its inputs through, judged in batches of two rows.
class Judge {
 public:
  Judge(const std::string& loss, int64_t outputs)
      : outputs_(outputs),
        spec_(FromText<v1::LossSpec>(loss)),
        model_("sequential { linear { in: " + std::to_string(outputs) +
                   " out: " + std::to_string(outputs) + " bias: false } }",
               {outputs}, 2) {
    Floats identity(static_cast<size_t>(outputs * outputs), 0.0f);
    for (int64_t i = 0; i < outputs; ++i) identity[i * outputs + i] = 1;
    model_.SetWeight(0, identity);
    loss_ = *Loss::Create(spec_, {&model_.ops(), 2, outputs});
  }

  absl::StatusOr<v1::EvaluationPart> Run(const Floats& logits,
                                         const LossTargets& targets) {
    const int64_t rows = static_cast<int64_t>(logits.size()) / outputs_;
    int64_t row = 0;
    return EvaluateModel(
        &model_.ops(), &*model_, loss_.get(), spec_,
        [&]() -> absl::StatusOr<EvaluationBatch> {
          EvaluationBatch batch = {.features = logits.data() + row * outputs_,
                                   .rows = std::min<int64_t>(2, rows - row)};
          if (targets.labels) batch.targets.labels = targets.labels + row;
          if (targets.values) {
            batch.targets.values = targets.values + row * outputs_;
          }
          row += batch.rows;
          return batch;
        });
  }

  // The metrics of the whole.
  std::map<std::string, double> Metrics(const Floats& logits,
                                        const LossTargets& targets) {
    const auto part = Run(logits, targets);
    EXPECT_TRUE(part.ok()) << part.status();
    Evaluation evaluation(spec_);
    TRIBUTARY_EXPECT_OK(evaluation.Add(*part));
    return evaluation.Metrics();
  }

 private:
  const int64_t outputs_;
  const v1::LossSpec spec_;
  CpuModel model_;
  std::unique_ptr<Loss> loss_;
};

// Losses: ln(1 + e^-2) for a right answer by 2, ln(1 + e^2) for a wrong one.
TEST(EvaluatorTest, CrossEntropyGivesLossAndAccuracy) {
  Judge judge("cross_entropy {}", 2);
  const int64_t labels[] = {0, 1, 1};
  const auto metrics = judge.Metrics({2, 0, 0, 2, 2, 0}, {.labels = labels});
  EXPECT_NEAR(metrics.at("accuracy"), 2.0 / 3, 1e-12);
  EXPECT_NEAR(metrics.at("loss"),
              (2 * std::log1p(std::exp(-2.0)) + std::log1p(std::exp(2.0))) / 3,
              1e-6);
}

TEST(EvaluatorTest, TheFirstOfEqualLogitsIsTheAnswerAndNanIsNever) {
  Judge judge("cross_entropy {}", 3);
  const int64_t labels[] = {0, 1, 0, 2};
  const float nan = std::nanf("");
  const auto part =
      judge.Run({1, 1, 0, 1, 1, 0, nan, 0, 0, 0, nan, 1}, {.labels = labels});
  TRIBUTARY_ASSERT_OK(part);
  EXPECT_EQ(part->correct(), 1u);
  EXPECT_EQ(part->samples(), 4u);
}

TEST(EvaluatorTest, BinaryGivesAccuracyAndAuc) {
  Judge judge("bce_with_logits {}", 1);
  const float targets[] = {1, 0, 1, 0, 0};
  // Pairs: .5 beats 0, -1, -2; -.5 beats -1, -2 of three: 5 of 6.
  const auto metrics = judge.Metrics({.5, 0, -.5, -1, -2}, {.values = targets});
  EXPECT_NEAR(metrics.at("auc"), 5.0 / 6, 1e-12);
  // Wrong: 0 counts as positive, -.5 as negative.
  EXPECT_NEAR(metrics.at("accuracy"), 3.0 / 5, 1e-12);
}

TEST(EvaluatorTest, ALogitThatIsNotANumberIsNeitherClass) {
  Judge judge("bce_with_logits {}", 1);
  const float targets[] = {1, 0, 1};
  const auto part =
      judge.Run({std::nanf(""), std::nanf(""), 1}, {.values = targets});
  TRIBUTARY_ASSERT_OK(part);
  EXPECT_EQ(part->correct(), 1u);
}

// Errors 1, 0, 2, 1: squares 6 of a variation of 5 around the mean 2.5.
TEST(EvaluatorTest, RegressionGivesMeanSquaredErrorAndR2) {
  Judge judge("mse {}", 1);
  const float targets[] = {1, 2, 3, 4};
  const auto metrics = judge.Metrics({2, 2, 5, 3}, {.values = targets});
  EXPECT_NEAR(metrics.at("loss"), 6.0 / 4, 1e-12);
  EXPECT_NEAR(metrics.at("r2"), 1 - 6.0 / 5, 1e-12);
}

// Errors -2, -1, 0, 1: squares 6, a variation of 5 around the mean 8000000.5.
TEST(EvaluatorTest, LargeTargetsKeepTheirDigits) {
  Judge judge("mse {}", 1);
  const float targets[] = {7999999, 8000000, 8000001, 8000002};
  const Floats predictions(4, 8000001);
  EXPECT_NEAR(judge.Metrics(predictions, {.values = targets}).at("r2"),
              1 - 6.0 / 5, 1e-6);
}

TEST(EvaluatorTest, EqualTargetsHaveNoR2HoweverMany) {
  Judge judge("mse {}", 1);
  const Floats targets(20000, 0.7f), predictions(20000, 0.5f);
  const auto metrics = judge.Metrics(predictions, {.values = targets.data()});
  EXPECT_EQ(metrics.count("r2"), 0u);
  EXPECT_NEAR(metrics.at("loss"), 0.04, 1e-6);
}

TEST(EvaluatorTest, SeveralOutputsCountLikeSeveralSamples) {
  Judge judge("mse {}", 2);
  const float targets[] = {1, 2, 3, 4};
  const auto metrics = judge.Metrics({2, 2, 5, 3}, {.values = targets});
  EXPECT_NEAR(metrics.at("loss"), 6.0 / 4, 1e-12);
  EXPECT_NEAR(metrics.at("r2"), 1 - 6.0 / 5, 1e-12);
}

TEST(EvaluatorTest, PassesOnTheErrorOfTheData) {
  CpuModel model("sequential { linear { in: 1 out: 1 } }", {1}, 1);
  const auto spec = FromText<v1::LossSpec>("mse {}");
  const auto loss = Loss::Create(spec, {&model.ops(), 1, 1});
  TRIBUTARY_ASSERT_OK(loss);
  EXPECT_THAT(EvaluateModel(&model.ops(), &*model, loss->get(), spec,
                            []() -> absl::StatusOr<EvaluationBatch> {
                              return absl::DataLossError("row 7 is torn");
                            }),
              StatusIs(absl::StatusCode::kDataLoss, "row 7 is torn"));
}

}  // namespace
}  // namespace tributary::testing
