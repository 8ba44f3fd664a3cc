// SPDX-License-Identifier: Apache-2.0
#include "cli/logs/log_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LogMergeTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(Path("logs"));
    Write("logs/server-0.log",
          "2026-11-21T08:00:01.000000Z info server-0: one\n"
          "2026-11-21T08:00:04.000000Z info server-0: four\n");
    Write("logs/worker-1.log",
          "starts\n"
          "2026-11-21T08:00:02.000000Z info worker-1: two\n"
          "  its second line\x1b[2J\n"
          "2026-11-21T08:00:03.500000Z info worker-1: thr");
    Write("logs/coordinator.log",
          R"({"time":"2026-11-21T08:00:03.000000Z","level":"info",)"
          R"("message":"three"})"
          "\n");
    Write("logs/notes.txt", "no log\n");
  }
  std::vector<std::string> All(LogFilter filter) {
    return LogMerge(Path("logs"), std::move(filter)).Take(/*at_end=*/true);
  }
};

TEST_F(LogMergeTest, LinesAreInTheOrderOfTheirTimes) {
  EXPECT_THAT(
      All({}),
      ElementsAre("worker-1: starts",
                  "2026-11-21T08:00:01.000000Z info server-0: one",
                  "2026-11-21T08:00:02.000000Z info worker-1: two",
                  "worker-1:   its second line [2J",
                  R"({"time":"2026-11-21T08:00:03.000000Z","level":"info",)"
                  R"("message":"three"})",
                  "2026-11-21T08:00:03.500000Z info worker-1: thr",
                  "2026-11-21T08:00:04.000000Z info server-0: four"));
}

TEST_F(LogMergeTest, OnlyWhatIsNewIsTaken) {
  LogMerge merge(Path("logs"), {});
  EXPECT_EQ(merge.Take(false).size(), 6u) << "a line without an end waits";
  EXPECT_THAT(merge.Take(false), IsEmpty());
  Write("logs/worker-1.log", Read("logs/worker-1.log") + "ee\n");
  Write("logs/server-1.log",
        "2026-11-21T08:00:03.200000Z info server-1: new\n");
  EXPECT_THAT(merge.Take(false),
              ElementsAre("2026-11-21T08:00:03.200000Z info server-1: new",
                          "2026-11-21T08:00:03.500000Z info worker-1: three"));
}

TEST_F(LogMergeTest, TheFilterTakesRoleRankAndTime) {
  const auto at = [](const char* text) {
    return ParseSince(text, absl::UnixEpoch()).value();
  };
  EXPECT_EQ(All({.role = "server"}).size(), 2u);
  EXPECT_EQ(All({.index = 1}).size(), 4u);
  EXPECT_EQ(All({.role = "server", .index = 1}).size(), 0u);
  EXPECT_EQ(All({.role = "coordinator"}).size(), 1u);
  EXPECT_THAT(All({.role = "worker", .since = at("2026-11-21T08:00:02.5Z")}),
              ElementsAre("worker-1: starts",
                          "2026-11-21T08:00:03.500000Z info worker-1: thr"));
}

TEST(ParseSinceTest, TakesAnAgeOrATime) {
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  EXPECT_EQ(ParseSince("90s", now).value(), now - absl::Seconds(90));
  EXPECT_EQ(ParseSince("1h30m", now).value(), now - absl::Minutes(90));
  EXPECT_EQ(ParseSince("1970-01-01T00:01:00Z", now).value(),
            absl::FromUnixSeconds(60));
  EXPECT_FALSE(ParseSince("-5s", now).ok());
  EXPECT_FALSE(ParseSince("yesterday", now).ok());
  EXPECT_FALSE(ParseSince("", now).ok());
}

TEST_F(LogMergeTest, AProcessWithoutALogIsKnown) {
  EXPECT_THAT(LoggedProcesses(Path("logs")),
              ElementsAre("coordinator", "server-0", "worker-1"));
  EXPECT_THAT(LoggedProcesses(Path("nowhere")), IsEmpty());
  LogMerge ninth(Path("logs"), {.index = 9});
  EXPECT_THAT(ninth.Take(/*at_end=*/true), IsEmpty());
  EXPECT_FALSE(ninth.has_files());
  LogMerge first(Path("logs"), {.role = "worker", .index = 1});
  first.Take(/*at_end=*/true);
  EXPECT_TRUE(first.has_files());
}

}  // namespace
}  // namespace tributary
