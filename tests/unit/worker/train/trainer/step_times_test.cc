// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/timeline_step.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

// Lets the time pass that the activity takes.
void Do(StepTimes& times, ManualClock& clock, v1::StepActivity activity,
        int64_t micros) {
  const int64_t begin = times.Now();
  clock.AdvanceMicros(micros);
  times.Add(activity, begin);
}

std::vector<std::string> Spans(const v1::StepReport& report) {
  std::vector<std::string> spans;
  for (const v1::StepSpan& span : report.spans()) {
    spans.push_back(absl::StrCat(v1::StepActivity_Name(span.activity()), " ",
                                 span.begin_micros(), " ", span.end_micros()));
  }
  return spans;
}

TEST(StepTimesTest, PartsAddUpToTheStep) {
  ManualClock clock;
  clock.AdvanceMicros(5'000'000);
  StepTimes times(&clock);
  Do(times, clock, v1::STEP_ACTIVITY_DATA, 1000);
  Do(times, clock, v1::STEP_ACTIVITY_FORWARD, 2000);
  const int64_t backward = times.Now();
  clock.AdvanceMicros(3000);
  const int64_t pushing = times.Now();
  clock.AdvanceMicros(500);
  times.AddPush(pushing);
  times.Add(v1::STEP_ACTIVITY_BACKWARD, backward);
  Do(times, clock, v1::STEP_ACTIVITY_IDLE, 700);
  Do(times, clock, v1::STEP_ACTIVITY_EXCHANGE, 300);
  Do(times, clock, v1::STEP_ACTIVITY_WAIT, 4000);
  v1::StepReport report;
  report.set_step(1);
  times.Fill({}, &report);
  EXPECT_DOUBLE_EQ(report.step_seconds(), 0.0115);
  EXPECT_DOUBLE_EQ(report.data_seconds(), 0.001);
  EXPECT_DOUBLE_EQ(report.push_seconds(), 0.0005);
  EXPECT_DOUBLE_EQ(report.idle_seconds(), 0.0007);
  EXPECT_DOUBLE_EQ(report.exchange_seconds(), 0.0003);
  EXPECT_DOUBLE_EQ(report.wait_seconds(), 0.004);
  // Forward and backward, without handing over.
  EXPECT_NEAR(report.compute_seconds(), 0.005, 1e-12);
  EXPECT_DOUBLE_EQ(report.optimizer_seconds(), 0);
}

TEST(StepTimesTest, ExchangesWithinALayerAreTakenOutOfIt) {
  ManualClock clock;
  StepTimes times(&clock);
  Do(times, clock, v1::STEP_ACTIVITY_DATA, 100);
  Do(times, clock, v1::STEP_ACTIVITY_FORWARD, 1000);
  Do(times, clock, v1::STEP_ACTIVITY_BACKWARD, 1000);
  Do(times, clock, v1::STEP_ACTIVITY_WAIT, 100);
  times.TakeOut({{300, 400}, {900, 1100}, {1100, 1150}, {2050, 2100}});
  v1::StepReport report;
  report.set_step(1);
  times.Fill({}, &report);
  EXPECT_DOUBLE_EQ(report.exchange_seconds(), 0.0004);
  EXPECT_DOUBLE_EQ(report.compute_seconds(), 0.0016);
  EXPECT_DOUBLE_EQ(report.wait_seconds(), 0.0001);
  EXPECT_THAT(
      Spans(report),
      ElementsAre(
          "STEP_ACTIVITY_DATA 0 100", "STEP_ACTIVITY_FORWARD 100 300",
          "STEP_ACTIVITY_EXCHANGE 300 400", "STEP_ACTIVITY_FORWARD 400 900",
          "STEP_ACTIVITY_EXCHANGE 900 1100", "STEP_ACTIVITY_EXCHANGE 1100 1150",
          "STEP_ACTIVITY_BACKWARD 1150 2050",
          "STEP_ACTIVITY_EXCHANGE 2050 2100", "STEP_ACTIVITY_WAIT 2100 2200"));
}

TEST(StepTimesTest, OptimizerCountsWhereTheStepWaitsForIt) {
  ManualClock clock;
  StepTimes times(&clock);
  Do(times, clock, v1::STEP_ACTIVITY_BACKWARD, 1000);
  Do(times, clock, v1::STEP_ACTIVITY_WAIT, 1000);
  v1::StepReport report;
  report.set_step(1);
  // 600 to 800 is hidden; 900 to 1300 and 1200 to 1400 overlap, and 400 of
  // their 500 lie in the wait.
  times.Fill({{true, 600, 800}, {true, 900, 1300}, {true, 1200, 1400}},
             &report);
  EXPECT_DOUBLE_EQ(report.optimizer_seconds(), 0.0004);
}

TEST(StepTimesTest, SpansAreOfTheThreadThenWhatWentOnBeside) {
  ManualClock clock;
  clock.AdvanceMicros(10'000);
  StepTimes times(&clock);
  Do(times, clock, v1::STEP_ACTIVITY_FORWARD, 100);
  Do(times, clock, v1::STEP_ACTIVITY_DATA, 0);
  Do(times, clock, v1::STEP_ACTIVITY_BACKWARD, 200);
  v1::StepReport report;
  report.set_step(1);
  // One transfer began before this step; two of this step overlap.
  times.Fill({{false, 9'000, 9'500},
              {false, 10'150, 10'200},
              {false, 10'120, 10'180},
              {true, 10'210, 10'900}},
             &report);
  EXPECT_THAT(Spans(report), ElementsAre("STEP_ACTIVITY_FORWARD 0 100",
                                         "STEP_ACTIVITY_BACKWARD 100 300",
                                         "STEP_ACTIVITY_COMMUNICATION 120 200",
                                         "STEP_ACTIVITY_OPTIMIZER 210 300"));
  EXPECT_GT(report.begin_micros(), int64_t{1'500'000'000'000'000});
}

TEST(StepTimesTest, StepsThatAreNotDrawnHaveNoSpans) {
  ManualClock clock;
  StepTimes times(&clock);
  Do(times, clock, v1::STEP_ACTIVITY_FORWARD, 100);
  v1::StepReport report;
  report.set_step(65);
  times.Fill({}, &report);
  EXPECT_EQ(report.spans_size(), 0);
  EXPECT_DOUBLE_EQ(report.step_seconds(), 1e-4);
}

TEST(StepTimesTest, MoreSpansThanAReportHoldsAreLeftOut) {
  ManualClock clock;
  StepTimes times(&clock);
  for (int i = 0; i < 1000; ++i) {
    Do(times, clock, v1::STEP_ACTIVITY_FORWARD, 1);
  }
  v1::StepReport report;
  report.set_step(1);
  times.Fill({}, &report);
  EXPECT_EQ(report.spans_size(), kMaxStepSpans);
}

TEST(StepTimesTest, ATraceHasEverySpanByTheClockItself) {
  ManualClock clock;
  clock.AdvanceMicros(10'000);
  StepTimes times(&clock);
  Do(times, clock, v1::STEP_ACTIVITY_FORWARD, 100);
  Do(times, clock, v1::STEP_ACTIVITY_WAIT, 50);
  TraceRecorder recorder({.first_step = 64, .last_step = 64, .clock = &clock});
  // Two transfers that overlap, and the optimizer.
  times.Record(64,
               {{false, 10'010, 10'060},
                {false, 10'020, 10'080},
                {true, 10'110, 10'120}},
               &recorder);
  std::vector<std::string> events;
  for (const TraceEvent& event : recorder.Take(9)) {
    EXPECT_EQ(event.step, 64);
    events.push_back(absl::StrCat(TraceKindName(event.kind), " ",
                                  event.begin_micros, " ", event.end_micros));
  }
  EXPECT_THAT(events, ElementsAre("forward 10000 10100", "wait 10100 10150",
                                  "communication 10010 10060",
                                  "communication 10020 10080",
                                  "optimizer 10110 10120"));
}

}  // namespace
}  // namespace tributary
