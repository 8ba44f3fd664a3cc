// SPDX-License-Identifier: Apache-2.0
#include "common/member/trace_sender.h"

#include <gtest/gtest.h>

#include <memory>

namespace tributary {
namespace {

constexpr uint64_t kClock = 99;

v1::JobSpec Job(int64_t first, int64_t last) {
  v1::JobSpec job;
  job.mutable_trace()->set_first_step(first);
  job.mutable_trace()->set_last_step(last);
  return job;
}

TEST(MakeTraceRecorderTest, OnlyAJobWithAPossibleRangeHasOne) {
  EXPECT_EQ(MakeTraceRecorder(v1::JobSpec()), nullptr);
  const auto recorder = MakeTraceRecorder(Job(3, 5));
  ASSERT_NE(recorder, nullptr);
  EXPECT_FALSE(recorder->Covers(1));  // from 0 here, from 1 in the job
  EXPECT_TRUE(recorder->Covers(2) && recorder->Covers(4));
  EXPECT_FALSE(recorder->Covers(5));
  EXPECT_EQ(MakeTraceRecorder(Job(5, 3)), nullptr);
  EXPECT_EQ(MakeTraceRecorder(Job(0, 3)), nullptr);
  EXPECT_EQ(MakeTraceRecorder(Job(1, INT64_MAX)), nullptr);
}

TEST(MakeTraceRecorderTest, WithLocalSgdAContributionCoversAPeriod) {
  v1::JobSpec job = Job(1, 10);
  job.mutable_strategy()
      ->mutable_parameter_server()
      ->mutable_sync()
      ->mutable_local_sgd()
      ->set_period(5);
  EXPECT_EQ(MakeTraceRecorder(job)->StepOf(1), 9);
}

class TraceSenderTest : public ::testing::Test {
 protected:
  void Record(int events) {
    for (int i = 0; i < events; ++i) {
      recorder_.Add({.kind = TraceKind::kCheck,
                     .step = 0,
                     .shard = 1,
                     .block = i,
                     .rank = 2,
                     .begin_micros = 100,
                     .end_micros = 130,
                     .bytes = 7});
    }
  }
  v1::HeartbeatRequest Beat() {
    v1::HeartbeatRequest request;
    request.set_finished(true);
    sender_.Fill(&request, 20);
    return request;
  }
  // The coordinator's clock is 1000 ahead; each way takes 10.
  void Answer(bool taken) {
    v1::HeartbeatResponse answer;
    answer.set_received_micros(1010);
    answer.set_answered_micros(1010);
    answer.set_trace_taken(taken);
    sender_.OnAnswer(answer, 0, 20);
  }

  TraceRecorder recorder_{{.first_step = 0, .last_step = 0}};
  TraceSender sender_{&recorder_, kClock};
};

TEST_F(TraceSenderTest, WaitsForAnEstimateOfTheClock) {
  Record(1);
  EXPECT_FALSE(Beat().has_trace());
  Answer(false);
  const v1::HeartbeatRequest request = Beat();
  ASSERT_EQ(request.trace().events_size(), 1);
  EXPECT_EQ(request.trace().offset_micros(), 1000);
  EXPECT_EQ(request.trace().uncertainty_micros(), 10);
  EXPECT_EQ(request.trace().clock(), kClock);
  const v1::TraceEvent& event = request.trace().events(0);
  EXPECT_EQ(event.kind(), v1::TRACE_EVENT_KIND_CHECK);
  EXPECT_EQ(event.step(), 1);
  EXPECT_EQ(event.shard(), 1u);
  EXPECT_EQ(event.block(), 0u);
  EXPECT_EQ(event.rank(), 2u);
  EXPECT_EQ(event.begin_micros(), 100);
  EXPECT_EQ(event.duration_micros(), 30u);
  EXPECT_EQ(event.bytes(), 7u);
}

TEST_F(TraceSenderTest, RepeatsWhatWasNotTaken) {
  Answer(false);
  Record(2);
  EXPECT_EQ(Beat().trace().events_size(), 2);
  Record(1);
  const v1::HeartbeatRequest again = Beat();  // no answer came
  EXPECT_EQ(again.trace().first(), 0u);
  EXPECT_EQ(again.trace().events_size(), 2);
  EXPECT_EQ(again.trace().recorded(), 3u);
  Answer(true);
  const v1::HeartbeatRequest next = Beat();
  EXPECT_EQ(next.trace().first(), 2u);
  ASSERT_EQ(next.trace().events_size(), 1);
  Answer(true);
  EXPECT_FALSE(Beat().has_trace());
}

TEST_F(TraceSenderTest, AHeartbeatIsBoundedAndTheMemberFinishesAfterTheLast) {
  Answer(false);
  constexpr int kMost = TraceSender::kMaxEvents;
  Record(kMost + 1);
  EXPECT_TRUE(sender_.Urgent());
  const v1::HeartbeatRequest first = Beat();
  EXPECT_EQ(first.trace().events_size(), kMost);
  EXPECT_FALSE(first.finished());
  Answer(true);
  EXPECT_FALSE(sender_.Urgent());
  const v1::HeartbeatRequest last = Beat();
  EXPECT_EQ(last.trace().events_size(), 1);
  EXPECT_TRUE(last.finished());
}

TEST_F(TraceSenderTest, ACoordinatorThatTakesNothingHoldsNobodyUp) {
  Answer(false);
  Record(3 * TraceSender::kMaxEvents / 2);
  EXPECT_FALSE(Beat().finished());
  Answer(false);
  EXPECT_FALSE(sender_.Urgent());
  EXPECT_TRUE(Beat().finished());
}

TEST_F(TraceSenderTest, DroppedEventsAreReportedWithoutOthers) {
  Answer(false);
  Record(TraceRecorder::kMaxEventsAStep + 2);
  for (int i = 0; i < 2; ++i) {
    Beat();
    Answer(true);
  }
  EXPECT_FALSE(Beat().has_trace());
  Record(1);
  const v1::HeartbeatRequest request = Beat();
  EXPECT_EQ(request.trace().events_size(), 0);
  EXPECT_EQ(request.trace().dropped(), 3u);
}

}  // namespace
}  // namespace tributary
