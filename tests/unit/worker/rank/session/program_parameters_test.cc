// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/program_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace tributary {
namespace {

using Gradients = ProgramParameters::Gradients;

// A small, a large and a running parameter, and the program's weights.
class ProgramParametersTest : public ::testing::TestWithParam<Gradients> {
 protected:
  static constexpr int64_t kLarge = 4 * ProgramParameters::kSmall + 5;

  ProgramParametersTest() {
    for (size_t i = 0; i < values_.size(); ++i) {
      std::copy(values_[i].begin(), values_[i].end(),
                parameters_.weight(static_cast<int>(i)));
    }
  }
  static std::vector<float*> Pointers(std::vector<std::vector<float>>& values) {
    return {values[0].data(), values[1].data(), values[2].data()};
  }

  std::vector<std::vector<float>> values_ = {
      {1, 2, 3}, std::vector<float>(kLarge, 0.5f), {4, 5}};
  ProgramParameters parameters_{
      {{"small", {3}},
       {"large", {kLarge}},
       {.name = "mean", .shape = {2}, .running_momentum = 1}},
      Pointers(values_),
      /*reserved=*/{},
      GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Memory, ProgramParametersTest,
                         ::testing::Values(Gradients::kShared,
                                           Gradients::kArray));

// A backward function may still read a weight whose gradient is final.
TEST_P(ProgramParametersTest, WeightsReachTheProgramWhenTheStepEnds) {
  parameters_.weight(0)[2] = 7;
  parameters_.weight(1)[0] = 8;
  EXPECT_EQ(values_[0][2], 3);
  EXPECT_EQ(values_[1][0], 0.5f);
  EXPECT_FALSE(parameters_.IsUnchanged(0));
  parameters_.Publish(/*steps=*/1);
  EXPECT_EQ(values_[0][2], 7);
  EXPECT_EQ(values_[1][0], 8);
  EXPECT_TRUE(parameters_.IsUnchanged(0));
}

TEST_P(ProgramParametersTest, PublishedWeightsAreUnchanged) {
  for (int64_t step = 0; step < 20; ++step) {
    parameters_.Publish(step);
    EXPECT_EQ(parameters_.FirstChanged(), "") << step;
  }
}

TEST_P(ProgramParametersTest, EveryElementOfASmallParameterCounts) {
  parameters_.Publish(7);
  for (float& value : values_[0]) {
    value += 1;
    EXPECT_EQ(parameters_.FirstChanged(), "small");
    EXPECT_FALSE(parameters_.IsUnchanged(0));
    value -= 1;
    EXPECT_EQ(parameters_.FirstChanged(), "");  // it was put back
  }
}

TEST_P(ProgramParametersTest, AChangeOfALongRunIsSeenInEveryStep) {
  constexpr int64_t kLength =
      ProgramParameters::kStride * ProgramParameters::kRun;
  for (int64_t step = 0; step < 2 * ProgramParameters::kStride; ++step) {
    parameters_.Publish(step);
    std::fill_n(values_[1].begin() + 1000 + step * 7, kLength, 0.25f);
    EXPECT_EQ(parameters_.FirstChanged(), "large") << step;
  }
}

TEST_P(ProgramParametersTest, AnElementThatIsWrittenInEveryStepIsSeen) {
  for (int64_t element : {int64_t{0}, int64_t{1279}, kLarge - 1}) {
    int seen = 0;
    for (int64_t step = 100; step < 100 + ProgramParameters::kStride; ++step) {
      parameters_.Publish(step);
      values_[1][element] = -1;
      EXPECT_FALSE(parameters_.IsUnchanged(1));
      if (parameters_.FirstChanged() == "large") ++seen;
    }
    EXPECT_EQ(seen, 1) << element;
  }
}

TEST_P(ProgramParametersTest, RunningAveragesMayMove) {
  parameters_.Publish(1);
  values_[2][0] = 9;
  EXPECT_EQ(parameters_.FirstChanged(), "");
}

TEST(ProgramParametersMemoryTest, ReservedMemoryIsTheServersOwn) {
  std::vector<float> weight(20, 1), bias(3, 2);
  ProgramParameters parameters({{"weight", {5, 4}}, {"bias", {3}}},
                               {weight.data(), bias.data()}, /*reserved=*/{1},
                               Gradients::kShared);
  EXPECT_NE(parameters.weight(0), weight.data());
  EXPECT_EQ(parameters.weight(1), bias.data());
  parameters.Publish(1);
  EXPECT_EQ(weight[19], 0);
  EXPECT_EQ(bias[2], 2);
  EXPECT_TRUE(parameters.IsUnchanged(1));
}

TEST(ProgramParametersMemoryTest, ArraysHaveOneOrder) {
  std::vector<float> weight(20, 1), bias(3, 2);
  ProgramParameters parameters({{"weight", {5, 4}}, {"bias", {3}}},
                               {weight.data(), bias.data()}, /*reserved=*/{0},
                               Gradients::kArray);
  const int64_t apart = parameters.weight(1) - parameters.weight(0);
  EXPECT_GE(apart, 20);
  EXPECT_EQ(parameters.gradient(1) - parameters.gradient(0), apart);
}

}  // namespace
}  // namespace tributary
