// SPDX-License-Identifier: Apache-2.0
#include "common/base/data_course.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "common/base/evaluation_steps.h"

namespace tributary {
namespace {

// 10 rows in batches of 3 are 3, 3, 3 and 1 rows; two batches a step make steps
// of 6 and 4 rows. After step 3, when 6 rows of the second epoch are taken, a
// step is one batch of 2 rows: two steps for the 4 rows that are left, then
// five an epoch.
DataCourse Changed() {
  DataCourse course(DataStretch{
      .rows = 10, .global_batch = 3, .accumulation = 2, .order = "o"});
  course.Add({.step = 3,
              .begin = {1, 6},
              .rows = 10,
              .global_batch = 2,
              .order = "o"});
  return course;
}

TEST(DataCourseTest, FindsThePositionAfterAnyStep) {
  const DataCourse course = Changed();
  const std::vector<DataPosition> wanted = {{0, 0}, {0, 6}, {1, 0}, {1, 6},
                                            {1, 8}, {2, 0}, {2, 2}, {2, 4},
                                            {2, 6}, {2, 8}, {3, 0}};
  for (size_t step = 0; step < wanted.size(); ++step) {
    const DataPosition at = course.After(static_cast<int64_t>(step));
    EXPECT_EQ(at.epoch, wanted[step].epoch) << step;
    EXPECT_EQ(at.row, wanted[step].row) << step;
  }
  EXPECT_EQ(course.EpochOf(0), 0);
  EXPECT_EQ(course.EpochOf(2), 1);
  EXPECT_EQ(course.EpochOf(3), 2);
  EXPECT_EQ(course.EpochOf(5), 2);
  EXPECT_EQ(course.EpochOf(6), 3);
}

TEST(DataCourseTest, KnowsTheEndsOfEpochsAcrossAChange) {
  const DataCourse course = Changed();
  EXPECT_EQ(course.StepsOf(1), 2);
  EXPECT_EQ(course.StepsOf(2), 5);
  EXPECT_EQ(course.StepsOf(3), 10);
  EXPECT_EQ(course.StepsOf(4), 15);
  std::vector<int64_t> ends;
  for (int64_t at = course.NextEpochEnd(0); at <= 15;
       at = course.NextEpochEnd(at)) {
    ends.push_back(at);
    EXPECT_TRUE(course.EndsEpoch(at)) << at;
  }
  EXPECT_EQ(ends, (std::vector<int64_t>{2, 5, 10, 15}));
  EXPECT_TRUE(course.Ends(2, 5));
  EXPECT_FALSE(course.Ends(2, 4));
}

TEST(DataCourseTest, UpToLeavesOutWhatBeginsLater) {
  EXPECT_EQ(Changed().UpTo(4).stretches().size(), 2u);
  EXPECT_EQ(Changed().UpTo(3).stretches().size(), 1u);
  EXPECT_EQ(Changed().UpTo(0).stretches().size(), 1u);
}

TEST(DataCourseTest, ImpossibleStretchesMakeNoCourse) {
  const DataStretch good{.rows = 10, .global_batch = 3};
  EXPECT_TRUE(DataCourse::Create({good}));
  EXPECT_TRUE(DataCourse::Create(Changed().stretches()));
  const auto refused = [&](auto change) {
    DataStretch bad = good;
    change(bad);
    return !DataCourse::Create({bad});
  };
  EXPECT_TRUE(refused([](DataStretch& s) { s.step = 1; }));
  EXPECT_TRUE(refused([](DataStretch& s) { s.rows = 0; }));
  EXPECT_TRUE(refused([](DataStretch& s) { s.global_batch = 0; }));
  EXPECT_TRUE(refused([](DataStretch& s) { s.accumulation = 0; }));
  EXPECT_TRUE(refused([](DataStretch& s) { s.begin.row = 10; }));
  EXPECT_TRUE(refused([](DataStretch& s) { s.begin.row = -1; }));
  EXPECT_TRUE(refused([](DataStretch& s) { s.begin.epoch = -1; }));
  std::vector<DataStretch> two = Changed().stretches();
  two[1].begin.row = 8;  // its rows 6 and 7 would be left out
  EXPECT_FALSE(DataCourse::Create(two));
  two = Changed().stretches();
  two[1].step = 0;
  EXPECT_FALSE(DataCourse::Create(two));
}

TEST(DataCourseTest, HugeNumbersDoNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const DataCourse course(
      DataStretch{.rows = 10, .global_batch = kMax, .accumulation = kMax});
  EXPECT_EQ(course.steps_per_epoch(), 1);
  EXPECT_EQ(course.After(7).epoch, 7);
  EXPECT_EQ(course.After(7).row, 0);
  EXPECT_EQ(course.StepsOf(kMax), kMax);
  EXPECT_FALSE(DataCourse(DataStretch{.rows = 10}).StepsOf(kMax));
}

TEST(DataCourseTest, EvaluationsFollowTheEndsOfEpochs) {
  const DataCourse course = Changed();
  const EvaluationSteps due{.course = course, .every = 4};
  for (int64_t step : {2, 4, 5, 8, 10, 12}) {
    EXPECT_TRUE(due.Includes(step)) << step;
  }
  for (int64_t step : {0, 1, 3, 6, 7, 9, 11}) {
    EXPECT_FALSE(due.Includes(step)) << step;
  }
  EXPECT_EQ(due.After(2), 4);
  EXPECT_EQ(due.After(4), 5);
}

}  // namespace
}  // namespace tributary
