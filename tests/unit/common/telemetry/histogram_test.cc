// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace tributary {
namespace {

TEST(HistogramTest, ABoundBelongsToItsOwnBucket) {
  Histogram histogram({0, 1, 2});
  histogram.Observe(1);
  const HistogramSnapshot snapshot = histogram.Snapshot();
  ASSERT_EQ(snapshot.buckets.size(), 3u);
  EXPECT_EQ(snapshot.buckets[0].cumulative_count, 0u);
  EXPECT_EQ(snapshot.buckets[1].cumulative_count, 1u);
  EXPECT_EQ(snapshot.buckets[2].cumulative_count, 1u);
}

TEST(HistogramTest, WhatIsAboveTheLastBoundStillCounts) {
  Histogram histogram({1});
  histogram.Observe(100);
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_EQ(snapshot.buckets[0].cumulative_count, 0u);
  EXPECT_EQ(snapshot.count, 1u);
  EXPECT_EQ(snapshot.sum, 100);
}

TEST(HistogramTest, ThreadsLoseNoObservation) {
  Histogram histogram({0.5});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&histogram] {
      for (int i = 0; i < 10'000; ++i) histogram.Observe(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Snapshot().count, 40'000u);
  EXPECT_EQ(histogram.Snapshot().sum, 40'000);  // whole numbers add up exactly
}

TEST(HistogramTest, TheReadyBoundsAscend) {
  const std::vector<double> bounds = Histogram::SecondsBounds();
  EXPECT_TRUE(std::is_sorted(bounds.begin(), bounds.end()));
  EXPECT_EQ(std::adjacent_find(bounds.begin(), bounds.end()), bounds.end());
}

}  // namespace
}  // namespace tributary
