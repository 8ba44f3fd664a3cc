// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/generate_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "worker/train/model/decided_class.h"

namespace tributary {
namespace {

// Probabilities 1/4, 1/2, 1/4.
const std::vector<float> kLogits = {0, std::log(2.0f), 0};

TEST(DrawTokenTest, ATokenIsDrawnByItsProbability) {
  EXPECT_EQ(DrawToken(kLogits, 1, 0), 0);
  EXPECT_EQ(DrawToken(kLogits, 1, 0.24), 0);
  EXPECT_EQ(DrawToken(kLogits, 1, 0.26), 1);
  EXPECT_EQ(DrawToken(kLogits, 1, 0.74), 1);
  EXPECT_EQ(DrawToken(kLogits, 1, 0.76), 2);
  EXPECT_EQ(DrawToken(kLogits, 1, 0.99999), 2);
}

// Temperature 1/2 squares the ratios: 1/6, 4/6, 1/6.
TEST(DrawTokenTest, ALowerTemperatureSharpens) {
  EXPECT_EQ(DrawToken(kLogits, 0.5, 0.16), 0);
  EXPECT_EQ(DrawToken(kLogits, 0.5, 0.17), 1);
  EXPECT_EQ(DrawToken(kLogits, 0.5, 0.83), 1);
  EXPECT_EQ(DrawToken(kLogits, 0.5, 0.84), 2);
}

TEST(DrawTokenTest, TemperatureZeroTakesTheFirstOfTheLargest) {
  for (double uniform : {0.0, 0.5, 0.99}) {
    EXPECT_EQ(DrawToken(kLogits, 0, uniform), 1);
    EXPECT_EQ(DrawToken({3, 3, 1}, 0, uniform), 0);
  }
}

TEST(DrawTokenTest, LogitsThatAreNotNumbersGiveNone) {
  for (double temperature : {0.0, 0.5, 1.0}) {
    EXPECT_EQ(DrawToken({NAN, NAN}, temperature, 0.5), kUndecided);
    EXPECT_EQ(DrawToken({0, NAN}, temperature, 0.5), kUndecided);
  }
  EXPECT_EQ(DrawToken({0, INFINITY}, 1, 0.5), kUndecided);
}

}  // namespace
}  // namespace tributary
