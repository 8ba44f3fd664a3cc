// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/weight_seal.h"

#include <gtest/gtest.h>

#include "worker/rank/session/program/gradient_sample.h"

namespace tributary {
namespace {

// A small, a large and a running parameter, and their weights.
class WeightSealTest : public ::testing::Test {
 protected:
  void Close(int64_t step) { seal_.Close(parameters_, Pointers(), step); }
  int FirstChanged() { return seal_.FirstChanged(parameters_, Pointers()); }
  std::vector<float*> Pointers() {
    return {values_[0].data(), values_[1].data(), values_[2].data()};
  }

  static constexpr int64_t kLarge = 4 * WeightSeal::kSmall + 5;
  const ParameterSpecs parameters_ = {
      {"small", {3}},
      {"large", {kLarge}},
      {.name = "mean", .shape = {2}, .running_momentum = 1}};
  std::vector<std::vector<float>> values_ = {
      {1, 2, 3}, std::vector<float>(kLarge, 0.5f), {4, 5}};
  WeightSeal seal_;
};

TEST_F(WeightSealTest, UnchangedWeightsKeepTheSeal) {
  EXPECT_EQ(FirstChanged(), -1);  // nothing is sealed
  for (int64_t step = 0; step < 20; ++step) {
    Close(step);
    EXPECT_EQ(FirstChanged(), -1) << step;
  }
}

TEST_F(WeightSealTest, EveryElementOfASmallParameterCounts) {
  for (float& value : values_[0]) {
    Close(7);
    value += 1;
    EXPECT_EQ(FirstChanged(), 0);
    value -= 1;
    EXPECT_EQ(FirstChanged(), -1);  // it was put back
  }
}

TEST_F(WeightSealTest, AChangeOfALongRunIsSeenInEveryStep) {
  const int64_t length = WeightSeal::kStride * WeightSeal::kRun;
  for (int64_t step = 0; step < 2 * WeightSeal::kStride; ++step) {
    Close(step);
    const int64_t begin = 1000 + step * 7;
    std::fill_n(values_[1].begin() + begin, length, 0.25f);
    EXPECT_EQ(FirstChanged(), 1) << step;
    std::fill_n(values_[1].begin() + begin, length, 0.5f);
  }
}

TEST_F(WeightSealTest, AnElementThatIsWrittenInEveryStepIsSeen) {
  for (int64_t element : {int64_t{0}, int64_t{1279}, kLarge - 1}) {
    int seen = 0;
    for (int64_t step = 100; step < 100 + WeightSeal::kStride; ++step) {
      Close(step);
      values_[1][element] = -1;
      if (FirstChanged() == 1) ++seen;
      values_[1][element] = 0.5f;  // as the servers would
    }
    EXPECT_EQ(seen, 1) << element;
  }
}

TEST_F(WeightSealTest, RunningAveragesMayMove) {
  Close(1);
  values_[2][0] = 9;
  EXPECT_EQ(FirstChanged(), -1);
}

// A gradient of four elements and one of many.
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
