// SPDX-License-Identifier: Apache-2.0
#include "common/evaluation/evaluation.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "tests/testing/status_matchers.h"

namespace tributary::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

v1::LossSpec CrossEntropy() {
  v1::LossSpec loss;
  loss.mutable_cross_entropy();
  return loss;
}
v1::LossSpec Binary() {
  v1::LossSpec loss;
  loss.mutable_bce_with_logits();
  return loss;
}
v1::LossSpec Regression() {
  v1::LossSpec loss;
  loss.mutable_mse();
  return loss;
}

v1::EvaluationPart Classes(uint64_t samples, double loss_sum,
                           uint64_t correct) {
  v1::EvaluationPart part;
  part.set_samples(samples);
  part.set_values(samples);
  part.set_loss_sum(loss_sum);
  part.set_correct(correct);
  return part;
}

TEST(EvaluationTest, PartsCountByTheirSamples) {
  Evaluation evaluation(CrossEntropy());
  TRIBUTARY_EXPECT_OK(evaluation.Add(Classes(3, 1.5, 2)));
  TRIBUTARY_EXPECT_OK(evaluation.Add(Classes(0, 0, 0)));  // a rank without rows
  TRIBUTARY_EXPECT_OK(evaluation.Add(Classes(1, 0.5, 1)));
  const std::map<std::string, double> expected = {{"loss", 0.5},
                                                  {"accuracy", 0.75}};
  EXPECT_EQ(evaluation.Metrics(), expected);
}

TEST(EvaluationTest, AProgramsAccuracyIsShownIfItCountsRightAnswers) {
  Evaluation without{v1::LossSpec()};
  ASSERT_TRUE(without.Add(Classes(4, 2, 0)).ok());
  EXPECT_EQ(without.Metrics(), (std::map<std::string, double>{{"loss", 0.5}}));
  Evaluation with{v1::LossSpec()};
  ASSERT_TRUE(with.Add(Classes(4, 2, 3)).ok());
  EXPECT_EQ(with.Metrics()["accuracy"], 0.75);
}

TEST(EvaluationTest, SequencesCountTheirPositions) {
  Evaluation evaluation(CrossEntropy());
  v1::EvaluationPart part = Classes(2, 3, 6);
  part.set_values(8);  // four positions each
  TRIBUTARY_EXPECT_OK(evaluation.Add(part));
  const std::map<std::string, double> expected = {
      {"loss", 1.5}, {"accuracy", 0.75}, {"perplexity", std::exp(1.5)}};
  EXPECT_EQ(evaluation.Metrics(), expected);
  EXPECT_THAT(evaluation.Add(Classes(2, 1, 1)),
              StatusIs(kInvalid,
                       "compared 1 values a sample, the parts before "
                       "it 4"));
}

// Such a loss is not the mean of the tokens' -ln p.
TEST(EvaluationTest, AWeightedOrSmoothedLossHasNoPerplexity) {
  v1::LossSpec balanced = CrossEntropy(), weighted = CrossEntropy(),
               smoothed = CrossEntropy();
  balanced.mutable_cross_entropy()->set_balanced(true);
  weighted.mutable_cross_entropy()->add_class_weights(1);
  smoothed.mutable_cross_entropy()->set_label_smoothing(0.1);
  for (const v1::LossSpec& loss : {balanced, weighted, smoothed}) {
    Evaluation evaluation(loss);
    v1::EvaluationPart part = Classes(2, 3, 6);
    part.set_values(8);
    TRIBUTARY_EXPECT_OK(evaluation.Add(part));
    EXPECT_EQ(evaluation.Metrics().count("perplexity"), 0u);
    EXPECT_EQ(evaluation.Metrics()["loss"], 1.5);
  }
}

TEST(EvaluationTest, NoSamplesGiveNoMetrics) {
  Evaluation evaluation(CrossEntropy());
  EXPECT_TRUE(evaluation.Metrics().empty());
  TRIBUTARY_EXPECT_OK(evaluation.Add(Classes(0, 0, 0)));
  EXPECT_TRUE(evaluation.Metrics().empty());
}

v1::EvaluationPart Scores(const std::vector<float>& scores,
                          const std::string& targets) {
  v1::EvaluationPart part = Classes(scores.size(), 0, 0);
  for (float score : scores) part.add_scores(score);
  for (char target : targets) {
    part.mutable_targets()->push_back(static_cast<char>(target - '0'));
  }
  return part;
}

// Each part alone has an area of 1; together, positive 2 is below negative 3.
TEST(EvaluationTest, TheAreaIsThatOfTheWhole) {
  Evaluation evaluation(Binary());
  TRIBUTARY_EXPECT_OK(evaluation.Add(Scores({2, 1}, "10")));
  TRIBUTARY_EXPECT_OK(evaluation.Add(Scores({4, 3}, "10")));
  EXPECT_EQ(evaluation.Metrics().at("auc"), 0.75);
}

TEST(EvaluationTest, OneClassAloneHasNoArea) {
  Evaluation evaluation(Binary());
  TRIBUTARY_EXPECT_OK(evaluation.Add(Scores({2, 1}, "11")));
  EXPECT_EQ(evaluation.Metrics().count("auc"), 0u);
  EXPECT_EQ(evaluation.Metrics().count("accuracy"), 1u);
}

v1::EvaluationPart Numbers(uint64_t samples, double mean, double variation,
                           double error_square_sum) {
  v1::EvaluationPart part = Classes(samples, error_square_sum, 0);
  part.set_target_mean(mean);
  part.set_target_variation(variation);
  part.set_error_square_sum(error_square_sum);
  return part;
}

// Targets 1, 2 and 3, 6: mean 3, variation 4 + 1 + 0 + 9 = 14.
TEST(EvaluationTest, R2ComparesWithTheMeanOfTheWhole) {
  Evaluation evaluation(Regression());
  TRIBUTARY_EXPECT_OK(evaluation.Add(Numbers(2, 1.5, 0.5, 0.5)));
  TRIBUTARY_EXPECT_OK(evaluation.Add(Numbers(2, 4.5, 4.5, 1.5)));
  EXPECT_DOUBLE_EQ(evaluation.Metrics().at("r2"), 1 - 2.0 / 14);
  EXPECT_DOUBLE_EQ(evaluation.Metrics().at("loss"), 0.5);
  EXPECT_EQ(evaluation.Metrics().count("accuracy"), 0u);
}

TEST(EvaluationTest, EqualTargetsHaveNoR2) {
  Evaluation evaluation(Regression());
  TRIBUTARY_EXPECT_OK(evaluation.Add(Numbers(2, 0.7, 0, 0.5)));
  TRIBUTARY_EXPECT_OK(evaluation.Add(Numbers(0, 0, 0, 0)));
  TRIBUTARY_EXPECT_OK(evaluation.Add(Numbers(19998, 0.7, 0, 0.5)));
  EXPECT_EQ(evaluation.Metrics().count("r2"), 0u);
}

TEST(EvaluationTest, AContradictoryPartIsRefusedAndNotAdded) {
  Evaluation classes(CrossEntropy());
  EXPECT_THAT(classes.Add(Classes(3, 1, 4)),
              StatusIs(kInvalid, "3 values says that 4 are right"));
  v1::EvaluationPart wide = Classes(3, 1, 1);
  wide.set_values(5);
  EXPECT_THAT(classes.Add(wide), StatusIs(kInvalid, "compared 5 values"));
  wide.set_values(0);
  EXPECT_THAT(classes.Add(wide), StatusIs(kInvalid, "compared 0 values"));
  EXPECT_THAT(classes.Add(Scores({1}, "1")),
              StatusIs(kInvalid, "wants 0 scores and targets, got 1 scores"));

  Evaluation binary(Binary());
  EXPECT_THAT(binary.Add(Classes(2, 1, 1)),
              StatusIs(kInvalid, "wants 2 scores and targets, got 0 scores"));
  EXPECT_THAT(binary.Add(Scores({1, 2}, "1")),
              StatusIs(kInvalid, "got 2 scores and 1 targets"));
  EXPECT_THAT(binary.Add(Scores({1, 2}, "12")),
              StatusIs(kInvalid, "targets of 0 or 1"));
  v1::EvaluationPart odd = Scores({1, 2, 3}, "101");
  odd.set_samples(2);
  EXPECT_THAT(binary.Add(odd),
              StatusIs(kInvalid, "2 samples cannot have compared 3 values"));
  Evaluation numbers(Regression());
  EXPECT_THAT(numbers.Add(Numbers(2, 0, -1, 0)),
              StatusIs(kInvalid, "target_variation must not be negative"));
  EXPECT_TRUE(classes.Metrics().empty());
  EXPECT_TRUE(binary.Metrics().empty());
  EXPECT_TRUE(numbers.Metrics().empty());
}

}  // namespace
}  // namespace tributary::testing
