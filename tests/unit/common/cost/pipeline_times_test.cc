// SPDX-License-Identifier: Apache-2.0
#include "common/cost/pipeline_times.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

constexpr PipelineSchedule k1F1B = PipelineSchedule::kOneForwardOneBackward;

// Forward 1 s, backward 2 s, four stages: 8 micro-batches take 8 + 3 times 3 s
// under both schedules, but 1F1B keeps at most four of them.
TEST(PipelineTimesTest, BothSchedulesTakeAsLongAnd1F1BKeepsFewer) {
  const std::vector<StageTime> stages(4, {1, 2, 0});
  const PipelineTimes eager = ReplayPipeline(stages, 8, k1F1B, {});
  const PipelineTimes gpipe =
      ReplayPipeline(stages, 8, PipelineSchedule::kGpipe, {});
  EXPECT_THAT(eager.end_seconds, DoubleEq(33));
  EXPECT_THAT(gpipe.end_seconds, DoubleEq(33));
  EXPECT_THAT(eager.most_in_flight, ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(gpipe.most_in_flight, ElementsAre(8, 8, 8, 8));
  // The last stage has done its last pass when the others' begin.
  EXPECT_THAT(eager.last_backward_begins, ElementsAre(31, 29, 27, 25));
  EXPECT_THAT(eager.last_backward_ends, ElementsAre(33, 31, 29, 27));
}

// 1 s forward, 10 bytes at 10 a second and half a second of latency, 2 s and
// 4 s on the last stage, the gradient back, 3 s.
TEST(PipelineTimesTest, AMicroBatchWaitsForItsInputAndItsGradient) {
  ClusterShape cluster;
  cluster.bandwidth = 10;
  cluster.latency = 0.5;
  const PipelineTimes times =
      ReplayPipeline({{1, 3, 10}, {2, 4, 0}}, 1, k1F1B, cluster);
  EXPECT_THAT(times.end_seconds, DoubleEq(1 + 1.5 + 2 + 4 + 1.5 + 3));
}

// A slow last stage: the first one's passes hide behind it.
TEST(PipelineTimesTest, TheSlowestStageSetsThePace) {
  const PipelineTimes times =
      ReplayPipeline({{1, 1, 0}, {2, 4, 0}}, 10, k1F1B, {});
  EXPECT_THAT(times.end_seconds, DoubleEq(1 + 10 * 6 + 1));
}

TEST(PipelineTimesTest, OneStageDoesItsPassesInTurn) {
  const PipelineTimes times = ReplayPipeline({{1, 2, 5}}, 4, k1F1B, {});
  EXPECT_THAT(times.end_seconds, DoubleEq(12));
  EXPECT_THAT(times.most_in_flight, ElementsAre(1));
}

}  // namespace
}  // namespace tributary
