// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/event_history.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

// Events at 1, 2, 3, ... microseconds.
EventHistory Counting() {
  return EventHistory([micros = int64_t{0}]() mutable { return ++micros; });
}

TEST(EventHistoryTest, EventsHaveTheirTimeAndComeOutOnce) {
  EventHistory history = Counting();
  history.Add("worker 1 was lost");
  history.Add("worker 1 takes its place");
  const std::vector<HistoryEvent> taken = history.TakeNew();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[1].micros, 2);
  EXPECT_EQ(taken[1].text, "worker 1 takes its place");
  EXPECT_TRUE(history.TakeNew().empty());
  EXPECT_EQ(history.Messages().size(), 2);
  EXPECT_EQ(history.Messages()[0].text(), "worker 1 was lost");
  EXPECT_EQ(history.Messages()[0].micros(), 1);
}

TEST(EventHistoryTest, TheOldestIsDroppedFirst) {
  EventHistory history = Counting();
  for (size_t i = 0; i < EventHistory::kMaxEvents + 3; ++i) {
    history.Add(absl::StrCat("event ", i));
  }
  EXPECT_EQ(history.all().size(), EventHistory::kMaxEvents);
  EXPECT_EQ(history.all().front().text, "event 3");
  EXPECT_EQ(history.TakeNew().size(), EventHistory::kMaxEvents);
}

TEST(EventHistoryTest, CheckpointsDoNotPushOutALoss) {
  EventHistory history = Counting();
  history.Add("server 0 was lost");
  for (int64_t step = 1; step <= 500; ++step) history.AddCheckpoint(step);
  ASSERT_EQ(history.all().size(), 1 + EventHistory::kMaxCheckpoints);
  EXPECT_EQ(history.all().front().text, "server 0 was lost");
  EXPECT_EQ(history.all().back().text,
            "the checkpoint of step 500 is complete");
}

TEST(EventHistoryTest, ACheckpointCountsOnce) {
  EventHistory history = Counting();
  history.AddCheckpoint(0);  // there is none yet
  history.AddCheckpoint(20);
  history.AddCheckpoint(20);
  EXPECT_EQ(history.all().size(), 1u);
  EXPECT_TRUE(history.all().front().checkpoint);
}

TEST(EventHistoryTest, ALongTextIsCut) {
  EventHistory history = Counting();
  history.Add(std::string(5000, 'x'));
  EXPECT_EQ(history.all().front().text,
            std::string(EventHistory::kMaxTextBytes - 3, 'x') + "...");
}

TEST(EventHistoryTest, EarlierEventsComeFirstAndAreNotNew) {
  EventHistory history = Counting();
  std::vector<HistoryEvent> earlier;
  for (int64_t i = 0; i < 100; ++i) {
    earlier.push_back({i, absl::StrCat("event ", i), false});
  }
  history.Continue(earlier, 7);
  EXPECT_EQ(history.all().size(), EventHistory::kMaxEvents);
  EXPECT_EQ(history.all().front().text, "event 37");  // 64 of 101 are left
  EXPECT_EQ(history.all().back().text,
            "another coordinator continues the job after step 7");
  EXPECT_EQ(history.TakeNew().size(), 1u);
}

}  // namespace
}  // namespace tributary
