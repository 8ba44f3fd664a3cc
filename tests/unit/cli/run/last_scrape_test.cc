// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/last_scrape.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr int64_t kScrapeSecond = 1'000'000;

TEST(LastScrapeTest, AReaderOfTargetsIsAwaitedUntilItHasReadThatThereAreNone) {
  LastScrape scrape;
  EXPECT_FALSE(scrape.TargetsRead(0));
  EXPECT_FALSE(scrape.TargetsRead(5 * kScrapeSecond));
  EXPECT_FALSE(scrape.Awaited(6 * kScrapeSecond)) << "the job goes on";
  scrape.End(/*failed=*/false, 7 * kScrapeSecond);
  EXPECT_TRUE(scrape.Awaited(9 * kScrapeSecond));
  EXPECT_TRUE(scrape.TargetsRead(10 * kScrapeSecond));
  EXPECT_FALSE(scrape.Awaited(10 * kScrapeSecond));
}

TEST(LastScrapeTest, AReaderThatDoesNotComeIsAwaitedForTwoIntervals) {
  LastScrape scrape;
  scrape.TargetsRead(0);
  scrape.TargetsRead(5 * kScrapeSecond);
  scrape.End(false, 7 * kScrapeSecond);
  EXPECT_TRUE(scrape.Awaited(17 * kScrapeSecond - 1));
  EXPECT_FALSE(scrape.Awaited(17 * kScrapeSecond));
}

TEST(LastScrapeTest, NoReaderIsAwaitedForLong) {
  LastScrape scrape;
  scrape.TargetsRead(0);
  scrape.TargetsRead(60 * kScrapeSecond);
  scrape.End(false, 61 * kScrapeSecond);
  EXPECT_TRUE(scrape.Awaited(91 * kScrapeSecond - 1));
  EXPECT_FALSE(scrape.Awaited(91 * kScrapeSecond));
}

TEST(LastScrapeTest, OneLookAndAReaderThatHasGoneAreNotAwaited) {
  LastScrape scrape;
  scrape.End(false, kScrapeSecond);
  EXPECT_FALSE(scrape.Awaited(kScrapeSecond)) << "nobody reads";

  LastScrape once;
  once.TargetsRead(0);
  once.End(false, kScrapeSecond);
  EXPECT_FALSE(once.Awaited(kScrapeSecond));

  LastScrape gone;
  gone.TargetsRead(0);
  gone.TargetsRead(5 * kScrapeSecond);
  gone.End(false, 16 * kScrapeSecond);
  EXPECT_FALSE(gone.Awaited(16 * kScrapeSecond));
}

TEST(LastScrapeTest, AFailureIsSeenBeforeThereAreNoTargets) {
  LastScrape scrape;
  for (const int64_t second : {0, 5}) {
    scrape.MetricsRead(second * kScrapeSecond);
    scrape.TargetsRead((second + 1) * kScrapeSecond);
  }
  scrape.End(/*failed=*/true, 7 * kScrapeSecond);
  EXPECT_FALSE(scrape.TargetsRead(8 * kScrapeSecond)) << "not seen yet";
  EXPECT_TRUE(scrape.Awaited(9 * kScrapeSecond));
  scrape.MetricsRead(10 * kScrapeSecond);
  EXPECT_TRUE(scrape.Awaited(10 * kScrapeSecond)) << "it has targets still";
  EXPECT_TRUE(scrape.TargetsRead(11 * kScrapeSecond));
  EXPECT_FALSE(scrape.Awaited(11 * kScrapeSecond));
}

}  // namespace
}  // namespace tributary
