// SPDX-License-Identifier: Apache-2.0
#include "common/plan/gradient_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/plan/partition_plan.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

// 3000, 10 and 5000 elements, each at a multiple of 16.
const ParameterSpecs kParameters = {{"a", {3000}}, {"b", {10}}, {"c", {5000}}};
const Offsets kOffsets = {0, 3008, 3024};

TEST(GradientRangesTest, BucketsFillInBackwardOrderTheFirstOneSooner) {
  const auto buckets = MakeBuckets(kParameters, kOffsets, 4, 100'000);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].first, 2);
  EXPECT_EQ(buckets[0].last, 2);
  EXPECT_EQ(buckets[0].begin, 3024);
  EXPECT_EQ(buckets[0].end, 8024);
  EXPECT_EQ(buckets[1].first, 0);
  EXPECT_EQ(buckets[1].last, 1);
  EXPECT_EQ(buckets[1].begin, 0);
  EXPECT_EQ(buckets[1].end, 3018);
}

TEST(GradientRangesTest, ABucketIsFullWithTheParameterThatFillsIt) {
  EXPECT_EQ(MakeBuckets(kParameters, kOffsets, 4 * 5010, 4).size(), 2u);
  EXPECT_EQ(MakeBuckets(kParameters, kOffsets, 4 * 5000, 4).size(), 3u);
  EXPECT_EQ(MakeBuckets(kParameters, kOffsets, 1 << 30, 4).size(), 1u);
}

TEST(GradientRangesTest, CutsFallOnGrainBordersAndKeepEveryElement) {
  const GradientBucket all = MakeBuckets(kParameters, kOffsets, 1 << 30, 1)[0];
  for (int parts : {1, 2, 3, 4, 16}) {
    const std::vector<int64_t> bounds =
        CutBucket(all, kParameters, kOffsets, parts);
    ASSERT_EQ(static_cast<int>(bounds.size()), parts + 1);
    std::vector<GradientRange> ranges;
    for (int part = 0; part < parts; ++part) {
      for (const GradientRange& range : RangesWithin(
               all, kParameters, kOffsets, bounds[part], bounds[part + 1])) {
        ranges.push_back(range);
      }
    }
    int parameter = 0;
    int64_t next = 0;
    for (const GradientRange& range : ranges) {
      ASSERT_EQ(range.parameter, parameter);
      ASSERT_EQ(range.begin, next);
      EXPECT_EQ(range.begin % kGrainElements, 0);
      next = range.end;
      if (next == kParameters[parameter].size()) {
        ++parameter;
        next = 0;
      }
    }
    EXPECT_EQ(parameter, 3) << parts << " parts";
  }
}

// Half of 8024 is element 988 of c: before its first grain's end.
TEST(GradientRangesTest, AHalfIsCutAtTheNearestBorderBelow) {
  const GradientBucket all = MakeBuckets(kParameters, kOffsets, 1 << 30, 1)[0];
  EXPECT_THAT(CutBucket(all, kParameters, kOffsets, 2),
              ElementsAre(0, 3024, 8024));
}

}  // namespace
}  // namespace tributary
