// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/last_scrape.h"

#include <gtest/gtest.h>

#include "absl/time/time.h"

namespace tributary {
namespace {

constexpr int64_t kScrapeSecond = 1'000'000;

// A reader that is known only because it comes again.
const PageReader kRegular = {.host = "10.0.0.1", .user_agent = "scraper"};

// A reader that says how often it reads; its connection comes from `port`.
PageReader Prometheus(int port) {
  return {.host = "10.0.0.1",
          .port = port,
          .user_agent = "Prometheus/2.42",
          .refresh = absl::Seconds(5)};
}

TEST(LastScrapeTest, AReaderOfTargetsIsAwaitedUntilItHasReadThatThereAreNone) {
  LastScrape scrape;
  EXPECT_FALSE(scrape.TargetsRead(kRegular, 0));
  EXPECT_FALSE(scrape.TargetsRead(kRegular, 5 * kScrapeSecond));
  EXPECT_FALSE(scrape.Awaited(6 * kScrapeSecond)) << "the job goes on";
  scrape.End(/*failed=*/false, 7 * kScrapeSecond);
  EXPECT_TRUE(scrape.Awaited(9 * kScrapeSecond));
  EXPECT_TRUE(scrape.TargetsRead(kRegular, 10 * kScrapeSecond));
  EXPECT_FALSE(scrape.Awaited(10 * kScrapeSecond));
}

TEST(LastScrapeTest, AReaderThatDoesNotComeIsAwaitedForTwoIntervals) {
  LastScrape scrape;
  scrape.TargetsRead(kRegular, 0);
  scrape.TargetsRead(kRegular, 5 * kScrapeSecond);
  scrape.End(false, 7 * kScrapeSecond);
  EXPECT_TRUE(scrape.Awaited(17 * kScrapeSecond - 1));
  EXPECT_FALSE(scrape.Awaited(17 * kScrapeSecond));
}

TEST(LastScrapeTest, NoReaderIsAwaitedForLong) {
  LastScrape scrape;
  scrape.TargetsRead(kRegular, 0);
  scrape.TargetsRead(kRegular, 60 * kScrapeSecond);
  scrape.End(false, 61 * kScrapeSecond);
  EXPECT_TRUE(scrape.Awaited(126 * kScrapeSecond - 1));
  EXPECT_FALSE(scrape.Awaited(126 * kScrapeSecond));
}

TEST(LastScrapeTest, OneLookAndAReaderThatHasGoneAreNotAwaited) {
  LastScrape scrape;
  scrape.End(false, kScrapeSecond);
  EXPECT_FALSE(scrape.Awaited(kScrapeSecond)) << "nobody reads";

  LastScrape once;
  once.TargetsRead(kRegular, 0);
  once.End(false, kScrapeSecond);
  EXPECT_FALSE(once.Awaited(kScrapeSecond));

  LastScrape gone;
  gone.TargetsRead(kRegular, 0);
  gone.TargetsRead(kRegular, 5 * kScrapeSecond);
  gone.End(false, 16 * kScrapeSecond);
  EXPECT_FALSE(gone.Awaited(16 * kScrapeSecond));
}

TEST(LastScrapeTest, AReaderThatStatesItsIntervalIsAwaitedAfterItsFirstRead) {
  LastScrape scrape;
  EXPECT_FALSE(scrape.TargetsRead(Prometheus(4000), 0));
  scrape.End(false, kScrapeSecond);
  EXPECT_TRUE(scrape.Awaited(4 * kScrapeSecond));
  EXPECT_TRUE(scrape.TargetsRead(Prometheus(4000), 5 * kScrapeSecond));
  EXPECT_FALSE(scrape.Awaited(5 * kScrapeSecond));
}

TEST(LastScrapeTest, EachReaderOfOneHostIsAwaited) {
  LastScrape scrape;
  scrape.TargetsRead(Prometheus(4000), 0);
  scrape.TargetsRead(Prometheus(4001), kScrapeSecond);
  scrape.End(false, 2 * kScrapeSecond);
  EXPECT_TRUE(scrape.TargetsRead(Prometheus(4000), 5 * kScrapeSecond));
  EXPECT_TRUE(scrape.Awaited(5 * kScrapeSecond));
  EXPECT_TRUE(scrape.TargetsRead(Prometheus(4001), 6 * kScrapeSecond));
  EXPECT_FALSE(scrape.Awaited(6 * kScrapeSecond));
}

TEST(LastScrapeTest, ALookOfSomebodyElseDoesNotStandForTheReader) {
  const PageReader curl = {.host = "10.0.0.1", .user_agent = "curl/7.88"};
  LastScrape scrape;
  for (const int64_t second : {0, 5, 10}) {
    scrape.TargetsRead(kRegular, second * kScrapeSecond);
  }
  scrape.TargetsRead(curl, 11 * kScrapeSecond);
  scrape.End(false, 11 * kScrapeSecond);
  EXPECT_TRUE(scrape.TargetsRead(curl, 12 * kScrapeSecond));
  EXPECT_TRUE(scrape.Awaited(14 * kScrapeSecond)) << "curl reads";
  EXPECT_TRUE(scrape.TargetsRead(kRegular, 15 * kScrapeSecond));
  EXPECT_FALSE(scrape.Awaited(15 * kScrapeSecond));
}

TEST(LastScrapeTest, AReaderThatConnectsAnewIsAwaitedForTwoOfItsIntervals) {
  LastScrape scrape;
  scrape.TargetsRead(Prometheus(4000), 0);
  scrape.End(false, kScrapeSecond);
  EXPECT_TRUE(scrape.TargetsRead(Prometheus(4010), 5 * kScrapeSecond));
  EXPECT_TRUE(scrape.Awaited(11 * kScrapeSecond - 1));
  EXPECT_FALSE(scrape.Awaited(11 * kScrapeSecond));
}

TEST(LastScrapeTest, AFailureIsSeenBeforeThereAreNoTargets) {
  LastScrape scrape;
  for (const int64_t second : {0, 5}) {
    scrape.MetricsRead(kRegular, second * kScrapeSecond);
    scrape.TargetsRead(kRegular, (second + 1) * kScrapeSecond);
  }
  scrape.End(/*failed=*/true, 7 * kScrapeSecond);
  EXPECT_FALSE(scrape.TargetsRead(kRegular, 8 * kScrapeSecond))
      << "not seen yet";
  EXPECT_TRUE(scrape.Awaited(9 * kScrapeSecond));
  scrape.MetricsRead(kRegular, 10 * kScrapeSecond);
  EXPECT_TRUE(scrape.Awaited(10 * kScrapeSecond)) << "it has targets still";
  EXPECT_TRUE(scrape.TargetsRead(kRegular, 11 * kScrapeSecond));
  EXPECT_FALSE(scrape.Awaited(11 * kScrapeSecond));
}

}  // namespace
}  // namespace tributary
