// SPDX-License-Identifier: Apache-2.0
#include "common/update/factored_moments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/ops.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

OptimizerOptions Adafactor() {
  OptimizerOptions options;
  options.kind = "adafactor";
  return options;
}

std::vector<float> Gradient(int64_t n) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  // Magnitudes of seven powers of ten, so that a sum in another order differs.
  for (float& v : values) {
    v = normal(random) * std::pow(10.0f, -static_cast<float>(random() % 7));
  }
  return values;
}

double Square(const std::vector<float>& x) {
  double sum = 0;
  for (float v : x) sum += double{v} * double{v};
  return sum;
}

// The totals when elements are split at these borders.
std::vector<double> TotalsOf(const ParameterSpec& parameter,
                             const std::vector<float>& gradient,
                             const std::vector<int64_t>& borders) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const double unit = FactorUnit(Square(gradient));
  std::vector<std::vector<double>> values;
  std::vector<FactorSums> sums;
  values.reserve(borders.size());
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    FactoredMoments(parameter, borders[i], borders[i + 1])
        .AppendSums(*ops, 1, unit, gradient.data() + borders[i],
                    &values.emplace_back());
    sums.push_back({0, borders[i], borders[i + 1], values.back().data()});
  }
  return AddFactorSums(Optimizer(Adafactor()), {parameter}, sums)[0];
}

TEST(FactoredMomentsTest, SumsOfRowsAndColumnsAreThoseOfTheSquares) {
  EXPECT_THAT(TotalsOf({"w", {2, 3}}, {1, 2, 3, 4, 5, 6}, {0, 6}),
              ElementsAre(14, 77, 17, 29, 45));
}

TEST(FactoredMomentsTest, ATensorWithMoreDimensionsIsOneRowForEachOfTheFirst) {
  EXPECT_THAT(TotalsOf({"w", {2, 1, 2}}, {1, 2, 3, 4}, {0, 4}),
              ElementsAre(5, 25, 10, 20));
}

// Borders within rows, and slices of less than a row.
TEST(FactoredMomentsTest, TheSumsAreTheSameBitsHoweverTheMatrixIsSplit) {
  const ParameterSpec parameter = {"w", {37, 111}};
  const std::vector<float> gradient = Gradient(parameter.size());
  const auto whole = TotalsOf(parameter, gradient, {0, 4107});
  EXPECT_EQ(TotalsOf(parameter, gradient, {0, 2048, 4107}), whole);
  EXPECT_EQ(TotalsOf(parameter, gradient, {0, 5, 10, 1024, 1111, 4107}), whole);
}

// A sum of rounded squares is off by half a unit for each of them at most.
TEST(FactoredMomentsTest, TheUnitIsAPowerOfTwoAboutFiftyBitsBelowTheSum) {
  const double unit = FactorUnit(1e-3);
  EXPECT_GE(1e-3 / unit, 0x1p49);
  EXPECT_LT(1e-3 / unit, 0x1p50);
  EXPECT_EQ(RoundedSquare(3 * std::sqrt(0.25f), 1.0), 2);  // 2.25
  EXPECT_EQ(FactorUnit(0), 1);
}

TEST(FactoredMomentsTest, AveragesMoveByTheWeightOfTheStep) {
  FactoredMoments moments({"w", {2, 2}}, 0, 4);
  OptimizerStep step;
  step.weight2 = 1;
  const std::vector<double> totals = {2, 4, 1, 5};
  moments.Update(step, totals);
  EXPECT_THAT(moments.rows(), ElementsAre(1, 2));
  EXPECT_THAT(moments.columns(), ElementsAre(0.5, 2.5));
  step.weight2 = 0.5;
  const std::vector<double> none = {0, 0, 0, 0};
  moments.Update(step, none);
  EXPECT_THAT(moments.rows(), ElementsAre(0.5, 1));
}

TEST(FactoredMomentsTest, WhatACheckpointHoldsFillsSlicesOfOtherBorders) {
  const ParameterSpec parameter = {"w", {3, 4}};
  FactoredMoments whole(parameter, 0, 12);
  OptimizerStep step;
  step.weight2 = 1;
  const std::vector<double> totals = {4, 8, 12, 3, 6, 9, 12};
  whole.Update(step, totals);
  std::vector<float> rows(12), columns(12);
  whole.Expand(rows.data(), columns.data());
  EXPECT_THAT(rows, ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3));
  EXPECT_THAT(columns, ElementsAre(1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4));
  FactoredMoments slice(parameter, 6, 9);
  slice.Restore(rows.data() + 6, absl::MakeConstSpan(columns).first(4));
  EXPECT_THAT(slice.rows(), ElementsAre(2, 3));
  EXPECT_THAT(slice.columns(), ElementsAre(1, 2, 3, 4));
}

// Rows 1 and 2 of mean 1.5; columns 1 and 2. The variance of the last element
// is 2 * 2 / 1.5.
TEST(FactoredMomentsTest, TheDirectionIsTheGradientOverTheRootOfTheVariance) {
  FactoredMoments moments({"w", {2, 2}}, 2, 4);
  OptimizerStep step = Optimizer(Adafactor()).Prepare(1, 0.01, 1);
  const std::vector<double> totals = {2, 4, 2, 4};
  moments.Update(step, totals);
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const std::vector<float> gradient = {1, -3};
  std::vector<float> direction(2);
  moments.MakeDirection(*ops, step, gradient.data(), direction.data());
  EXPECT_FLOAT_EQ(direction[0], 1 / std::sqrt(2 * 1 / 1.5f));
  EXPECT_FLOAT_EQ(direction[1], -3 / std::sqrt(2 * 2 / 1.5f));
}

}  // namespace
}  // namespace tributary
