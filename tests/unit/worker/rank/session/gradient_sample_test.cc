// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/gradient_sample.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

// The sample of two gradients: `few`, and 1000 elements that are `many`.
uint32_t SampleOf(const std::vector<float>& few, float many) {
  const ParameterSpec first{"few", {4}}, second{"many", {1000}};
  const std::vector<float> large(1000, many);
  GradientSample sample;
  sample.Add(1, second, large.data());
  sample.Add(0, first, few.data());
  return sample.Take();
}

TEST(GradientSampleTest, EqualGradientsHaveTheSameSampleInAnyOrder) {
  const std::vector<float> few = {1, 2, 3, 4};
  EXPECT_EQ(SampleOf(few, 0.5), SampleOf(few, 0.5));
  EXPECT_NE(SampleOf(few, 0.5), SampleOf(few, 0.25));
  EXPECT_NE(SampleOf(few, 0.5), SampleOf({1, 2, 3, 5}, 0.5));
  GradientSample other_order;
  other_order.Add(0, {"few", {4}}, few.data());
  const std::vector<float> large(1000, 0.5f);
  other_order.Add(1, {"many", {1000}}, large.data());
  EXPECT_EQ(other_order.Take(), SampleOf(few, 0.5));
  EXPECT_EQ(other_order.Take(), 0u);  // the next step's
  // Equal gradients of two parameters do not cancel.
  other_order.Add(0, {"few", {4}}, few.data());
  other_order.Add(1, {"other", {4}}, few.data());
  EXPECT_NE(other_order.Take(), 0u);
}

TEST(GradientSampleTest, ZerosAndRunningAveragesSayNothing) {
  EXPECT_EQ(SampleOf({0, -0.0f, 0, 0}, 0), 0u);
  const float mean = 3;
  GradientSample sample;
  sample.Add(0, {.name = "mean", .shape = {1}, .running_momentum = 1}, &mean);
  EXPECT_EQ(sample.Take(), 0u);
  // Parameters whose gradients are zeros do not hide others.
  EXPECT_NE(SampleOf({0, 0, 0, 0}, 1), 0u);
}

}  // namespace
}  // namespace tributary
