// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/class_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::LossSpec Balanced() {
  v1::LossSpec loss;
  loss.mutable_cross_entropy()->set_balanced(true);
  loss.mutable_cross_entropy()->set_label_smoothing(0.25);
  return loss;
}

// compute_class_weight("balanced") of scikit-learn for 5, 2 and 1 rows: 8 / 15,
// 8 / 6 and 8 / 3.
TEST(ClassWeightsTest, RareClassesHaveLargeWeights) {
  EXPECT_THAT(BalancedClassWeights({5, 2, 0, 1}),
              ElementsAre(8.0 / 15, 8.0 / 6, 1, 8.0 / 3));
}

TEST(ClassWeightsTest, TheyTakeThePlaceOfBalanced) {
  RawData raw;
  raw.rows = 4;
  raw.feature_shape = {1};
  raw.numeric_width = 1;
  raw.numbers = {1, 2, 3, 4};
  raw.targets.labels = {0, 2, 0, 0};
  const Dataset data(std::move(raw), {});
  const v1::LossSpec loss = *WithClassWeights(Balanced(), data, 3);
  EXPECT_FALSE(loss.cross_entropy().balanced());
  EXPECT_EQ(loss.cross_entropy().label_smoothing(), 0.25);
  EXPECT_THAT(loss.cross_entropy().class_weights(), ElementsAre(4.0 / 6, 1, 2));
  v1::LossSpec plain;
  plain.mutable_cross_entropy();
  EXPECT_THAT(WithClassWeights(plain, data, 3)->cross_entropy().class_weights(),
              IsEmpty());
}

// The samples 0 1 1 and 1 2 1 have the targets 1 1 2 and 2 1 0.
TEST(ClassWeightsTest, OfATextThePositionsOfAllSamplesCount) {
  RawData raw;
  raw.rows = 2;
  raw.feature_shape = {3};
  raw.tokens = {0, 1, 1, 2, 1, 0};
  raw.token_stride = 2;
  raw.num_tokens = 3;
  raw.targets.width = 3;
  const Dataset data(std::move(raw), {});
  EXPECT_THAT(*data.CountClasses(4), ElementsAre(1, 3, 2, 0));
}

}  // namespace
}  // namespace tributary
