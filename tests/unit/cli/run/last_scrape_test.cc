// SPDX-License-Identifier: Apache-2.0
#include "cli/run/last_scrape.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(LastScrapeTest, AReaderOfTargetsIsAwaitedUntilItHasReadThatThereAreNone) {
  LastScrape scrape;
  EXPECT_FALSE(scrape.TargetsRead(0));
  EXPECT_FALSE(scrape.TargetsRead(5 * kSecond));
  EXPECT_FALSE(scrape.Awaited(6 * kSecond)) << "the job goes on";
  scrape.End(/*failed=*/false, 7 * kSecond);
  EXPECT_TRUE(scrape.Awaited(9 * kSecond));
  EXPECT_TRUE(scrape.TargetsRead(10 * kSecond));
  EXPECT_FALSE(scrape.Awaited(10 * kSecond));
}

TEST(LastScrapeTest, AReaderThatDoesNotComeIsAwaitedForTwoIntervals) {
  LastScrape scrape;
  scrape.TargetsRead(0);
  scrape.TargetsRead(5 * kSecond);
  scrape.End(false, 7 * kSecond);
  EXPECT_TRUE(scrape.Awaited(17 * kSecond - 1));
  EXPECT_FALSE(scrape.Awaited(17 * kSecond));
}

TEST(LastScrapeTest, NoReaderIsAwaitedForLong) {
  LastScrape scrape;
  scrape.TargetsRead(0);
  scrape.TargetsRead(60 * kSecond);
  scrape.End(false, 61 * kSecond);
  EXPECT_TRUE(scrape.Awaited(91 * kSecond - 1));
  EXPECT_FALSE(scrape.Awaited(91 * kSecond));
}

TEST(LastScrapeTest, OneLookAndAReaderThatHasGoneAreNotAwaited) {
  LastScrape scrape;
  scrape.End(false, kSecond);
  EXPECT_FALSE(scrape.Awaited(kSecond)) << "nobody reads";

  LastScrape once;
  once.TargetsRead(0);
  once.End(false, kSecond);
  EXPECT_FALSE(once.Awaited(kSecond));

  LastScrape gone;
  gone.TargetsRead(0);
  gone.TargetsRead(5 * kSecond);
  gone.End(false, 16 * kSecond);
  EXPECT_FALSE(gone.Awaited(16 * kSecond));
}

TEST(LastScrapeTest, AFailureIsSeenBeforeThereAreNoTargets) {
  LastScrape scrape;
  for (const int64_t second : {0, 5}) {
    scrape.MetricsRead(second * kSecond);
    scrape.TargetsRead((second + 1) * kSecond);
  }
  scrape.End(/*failed=*/true, 7 * kSecond);
  EXPECT_FALSE(scrape.TargetsRead(8 * kSecond)) << "not seen yet";
  EXPECT_TRUE(scrape.Awaited(9 * kSecond));
  scrape.MetricsRead(10 * kSecond);
  EXPECT_TRUE(scrape.Awaited(10 * kSecond)) << "it has targets still";
  EXPECT_TRUE(scrape.TargetsRead(11 * kSecond));
  EXPECT_FALSE(scrape.Awaited(11 * kSecond));
}

}  // namespace
}  // namespace tributary
