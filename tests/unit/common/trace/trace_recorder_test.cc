// SPDX-License-Identifier: Apache-2.0
#include "common/trace/trace_recorder.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace tributary {
namespace {

TraceEvent Event(int64_t step, int32_t block = 0) {
  return {.kind = TraceKind::kCheck, .step = step, .block = block};
}

TEST(TraceEventTest, EveryKindHasANameOfItsOwn) {
  std::set<absl::string_view> names;
  for (int i = 1; i <= static_cast<int>(kLastTraceKind); ++i) {
    const auto kind = static_cast<TraceKind>(i);
    names.insert(TraceKindName(kind));
    EXPECT_EQ(TraceKindOf(TraceKindName(kind)), kind);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kLastTraceKind));
  EXPECT_EQ(TraceKindName(TraceKind::kWait), "wait");
  EXPECT_EQ(TraceKindName(TraceKind::kAnswer), "answer");
  EXPECT_FALSE(TraceKindOf("").has_value());
  EXPECT_FALSE(TraceKindOf("sleep").has_value());
}

TEST(TraceRecorderTest, KeepsEventsOfTracedStepsInOrder) {
  TraceRecorder recorder({.first_step = 4, .last_step = 5});
  for (int64_t step : {3, 4, 5, 6, -1}) recorder.Add(Event(step));
  EXPECT_FALSE(recorder.Covers(3));
  EXPECT_TRUE(recorder.Covers(5));
  EXPECT_EQ(recorder.waiting(), 2u);
  EXPECT_EQ(recorder.Take(1), std::vector<TraceEvent>{Event(4)});
  EXPECT_EQ(recorder.Take(10), std::vector<TraceEvent>{Event(5)});
  EXPECT_TRUE(recorder.Take(10).empty());
  EXPECT_EQ(recorder.counts().recorded, 2u);
  EXPECT_EQ(recorder.counts().dropped, 0u);
}

TEST(TraceRecorderTest, AStepHasALimitOfEventsEvenWhenTheyAreTaken) {
  TraceRecorder recorder(
      {.first_step = 0, .last_step = 1, .max_events_a_step = 2});
  for (int i = 0; i < 3; ++i) {
    recorder.Add(Event(0, i));
    recorder.Take(1);
  }
  recorder.Add(Event(1));  // another step
  EXPECT_EQ(recorder.counts().recorded, 3u);
  EXPECT_EQ(recorder.counts().dropped, 1u);
}

TEST(TraceRecorderTest, TheEventsThatWaitHaveALimit) {
  TraceRecorder recorder({.first_step = 0, .last_step = 0, .max_waiting = 2});
  for (int i = 0; i < 5; ++i) recorder.Add(Event(0, i));
  EXPECT_EQ(recorder.waiting(), 2u);
  EXPECT_EQ(recorder.counts().dropped, 3u);
  recorder.Take(2);
  recorder.Add(Event(0, 5));
  EXPECT_EQ(recorder.Take(2), std::vector<TraceEvent>{Event(0, 5)});
}

TEST(TraceRecorderTest, AContributionCountsForItsLastStep) {
  // Steps 8 to 11 are traced. Contributions of 4 steps end with steps 3, 7, 11.
  const TraceRecorder recorder(
      {.first_step = 8, .last_step = 11, .steps_a_contribution = 4});
  EXPECT_EQ(recorder.StepOf(1), 7);
  EXPECT_EQ(recorder.StepOf(2), 11);
  EXPECT_TRUE(recorder.Covers(recorder.StepOf(2)));
  EXPECT_FALSE(recorder.Covers(recorder.StepOf(1)));
  for (int64_t other : {int64_t{-1}, int64_t{3}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(recorder.StepOf(other), -1) << other;
  }
}

TEST(TraceScopeTest, RecordsItsTimes) {
  ManualClock clock;
  clock.AdvanceMicros(10);
  TraceRecorder recorder({.first_step = 0, .last_step = 0, .clock = &clock});
  {
    const TraceScope scope(&recorder, Event(0));
    const TraceScope without(nullptr, Event(0));
    clock.AdvanceMicros(5);
  }
  const std::vector<TraceEvent> events = recorder.Take(2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].begin_micros, 10);
  EXPECT_EQ(events[0].end_micros, 15);
}

TEST(TraceRecorderTest, ThreadsMayAddAtOnce) {
  TraceRecorder recorder({.first_step = 0, .last_step = 0});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&recorder] {
      for (int i = 0; i < 100; ++i) recorder.Add(Event(0, i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recorder.Take(1000).size(), 400u);
}

}  // namespace
}  // namespace tributary
