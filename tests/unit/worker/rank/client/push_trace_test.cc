// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/push_trace.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(PushTraceTest, RecordsTheWayOfABlockOnce) {
  ManualClock clock;
  TraceRecorder recorder({.first_step = 3, .last_step = 3, .clock = &clock});
  Block block{.shard = 1, .index = 4, .size = 8, .slices = {{.end = 8}}};
  clock.AdvanceMicros(10);
  PushTrace trace(&recorder, 3, block);
  clock.AdvanceMicros(10);
  trace.Sent();
  clock.AdvanceMicros(10);
  trace.Sent();  // a repetition
  trace.Answered();
  clock.AdvanceMicros(10);
  trace.Answered();  // the first answer was damaged
  clock.AdvanceMicros(10);
  trace.Stored();
  const auto event = [](TraceKind kind, int64_t begin, int64_t end) {
    return TraceEvent{.kind = kind,
                      .step = 3,
                      .shard = 1,
                      .block = 4,
                      .begin_micros = begin,
                      .end_micros = end,
                      .bytes = 32};
  };
  EXPECT_EQ(recorder.Take(9),
            (std::vector<TraceEvent>{event(TraceKind::kQueue, 10, 20),
                                     event(TraceKind::kFlight, 20, 40),
                                     event(TraceKind::kStore, 40, 50)}));
}

TEST(PushTraceTest, OtherStepsAndJobsWithoutATraceRecordNothing) {
  TraceRecorder recorder({.first_step = 3, .last_step = 3});
  const Block block;
  for (TraceRecorder* some :
       {&recorder, static_cast<TraceRecorder*>(nullptr)}) {
    PushTrace trace(some, 2, block);
    trace.Sent();
    trace.Answered();
    trace.Stored();
  }
  EXPECT_EQ(recorder.waiting(), 0u);
}

}  // namespace
}  // namespace tributary
