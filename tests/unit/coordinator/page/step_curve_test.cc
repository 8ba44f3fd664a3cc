// SPDX-License-Identifier: Apache-2.0
#include "coordinator/page/step_curve.h"

#include <gtest/gtest.h>

#include <limits>

namespace tributary {
namespace {

TEST(StepCurveTest, EveryStepIsAPointWhileThereAreFew) {
  StepCurve curve;
  for (int64_t step = 1; step <= 400; ++step) {
    curve.Add(step, static_cast<double>(step));
  }
  EXPECT_EQ(curve.width(), 1);
  const auto points = curve.Points();
  ASSERT_EQ(points.size(), 400u);
  EXPECT_EQ(points[6].step, 7);
  EXPECT_EQ(points[6].value, 7.0);
}

// The 401st step joins pairs: 1 and 2 have the mean 1.5, 399 and 400 399.5, and
// 401 is alone until 402 comes.
TEST(StepCurveTest, TooManyPointsAreJoinedInPairs) {
  StepCurve curve;
  for (int64_t step = 1; step <= 401; ++step) {
    curve.Add(step, static_cast<double>(step));
  }
  EXPECT_EQ(curve.width(), 2);
  auto points = curve.Points();
  ASSERT_EQ(points.size(), 201u);
  EXPECT_EQ(points[0].step, 2);
  EXPECT_EQ(points[0].value, 1.5);
  EXPECT_EQ(points[199].value, 399.5);
  EXPECT_EQ(points[200].value, 401.0);
  curve.Add(402, 402);
  points = curve.Points();
  ASSERT_EQ(points.size(), 201u);
  EXPECT_EQ(points[200].step, 402);
  EXPECT_EQ(points[200].value, 401.5);
}

TEST(StepCurveTest, AMillionStepsKeepTheirMeanAndAtMost400Points) {
  StepCurve curve;
  for (int64_t step = 1; step <= 1'000'000; ++step) {
    curve.Add(step, static_cast<double>(step));
    if (step % 1009 != 0) continue;
    ASSERT_LE(curve.Points().size(), StepCurve::kMaxPoints) << step;
  }
  const auto points = curve.Points();
  EXPECT_LE(points.size(), StepCurve::kMaxPoints);
  EXPECT_GE(points.size(), StepCurve::kMaxPoints / 2);
  // A point's steps are the last `width` ones: 1 + 2 + ... has their middle.
  EXPECT_EQ(*points[100].value, static_cast<double>(points[100].step) -
                                    static_cast<double>(curve.width() - 1) / 2);
}

TEST(StepCurveTest, EvaluationsFarApartAreKeptApart) {
  StepCurve curve;
  for (int64_t i = 1; i <= 3; ++i) curve.Add(469 * i, 0.1 * i);
  ASSERT_EQ(curve.Points().size(), 3u);
  EXPECT_EQ(curve.Points()[2].step, 1407);
}

TEST(StepCurveTest, ARepeatedStepCountsOnce) {
  StepCurve curve;
  curve.Add(1, 4);
  curve.Add(2, 6);
  curve.Add(2, 100);
  curve.Add(1, 100);
  ASSERT_EQ(curve.Points().size(), 2u);
  EXPECT_EQ(curve.Points()[1].value, 6.0);
}

TEST(StepCurveTest, AValueThatIsNotFiniteLeavesAGap) {
  StepCurve curve;
  curve.Add(1, 4);
  curve.Add(2, std::numeric_limits<double>::quiet_NaN());
  curve.Add(3, std::numeric_limits<double>::infinity());
  curve.Add(4, 5);
  const auto points = curve.Points();
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0].value, 4.0);
  EXPECT_FALSE(points[1].value.has_value());
  EXPECT_FALSE(points[2].value.has_value());
  EXPECT_EQ(points[3].value, 5.0);
}

}  // namespace
}  // namespace tributary
