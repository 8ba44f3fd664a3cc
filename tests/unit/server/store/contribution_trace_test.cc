// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/trace/trace_recorder.h"
#include "tests/unit/server/store/parameter_shard_fixture.h"

namespace tributary {
namespace {

// Time passes with every look at the clock.
class CountingClock final : public Clock {
 public:
  int64_t NowMicros() const override { return ++now_; }

 private:
  mutable std::atomic<int64_t> now_{0};
};

class ContributionTraceTest : public ParameterShardTest {
 protected:
  void CreateTraced(std::unique_ptr<SyncPolicy> policy, double clip_norm = 0) {
    ParameterShard::Options options;
    options.num_workers = 2;
    options.training.clip_norm = clip_norm;
    options.training.policy = std::move(policy);
    options.trace = &recorder_;
    Create(std::move(options));
    Initialize();
  }
  // "check 0": kind and rank, in the order in which the events ended.
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    for (const TraceEvent& event : recorder_.Take(100)) {
      EXPECT_EQ(event.step, 1);
      EXPECT_EQ(event.shard, 0);
      EXPECT_EQ(event.block, 0);
      EXPECT_LT(event.begin_micros, event.end_micros);
      EXPECT_GT(event.begin_micros, last_end_micros_);
      last_end_micros_ = event.end_micros;
      events.push_back(
          absl::StrCat(TraceKindName(event.kind), " ", event.rank));
    }
    return events;
  }

  CountingClock clock_;
  TraceRecorder recorder_{{.first_step = 1, .last_step = 1, .clock = &clock_}};
  int64_t last_end_micros_ = 0;
};

TEST_F(ContributionTraceTest, ShowsArrivalsUpdateAndAnswersOfATracedStep) {
  CreateTraced(std::make_unique<BulkSynchronous>());
  Push(Make(0, 0, 1));
  Push(Make(1, 0, 1));
  EXPECT_EQ(recorder_.waiting(), 0u);  // step 0 is not traced
  EXPECT_EQ(clock_.NowMicros(), 1);    // and takes no look at the clock
  Push(Make(1, 1, 1));
  Push(Make(0, 1, 1));
  EXPECT_EQ(Events(),
            (std::vector<std::string>{"check 1", "check 0", "update -1",
                                      "answer 1", "answer 0"}));
  Push(Make(1, 2, 1));
  EXPECT_EQ(recorder_.waiting(), 0u);
}

TEST_F(ContributionTraceTest, EventsHaveTheBytesOfTheirPayloads) {
  CreateTraced(std::make_unique<Asynchronous>());
  Push(Make(1, 0, 1));
  Push(Make(1, 1, 1));
  const std::vector<TraceEvent> events = recorder_.Take(9);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].bytes, 16u);  // four floats
  EXPECT_EQ(events[1].bytes, 0u);
  EXPECT_EQ(events[2].bytes, 16u);
}

TEST_F(ContributionTraceTest, AnUpdateOfOneContributionNamesItsRank) {
  CreateTraced(std::make_unique<Asynchronous>());
  Push(Make(1, 0, 1));
  Push(Make(1, 1, 1));
  EXPECT_EQ(Events(),
            (std::vector<std::string>{"check 1", "update 1", "answer 1"}));
}

TEST_F(ContributionTraceTest, AClippedStepIsSummedBeforeItIsApplied) {
  CreateTraced(std::make_unique<BulkSynchronous>(), /*clip_norm=*/1);
  for (int64_t step : {0, 1}) {
    Push(Make(0, step, 1));
    Push(Make(1, step, 1));
  }
  EXPECT_EQ(Events(),
            (std::vector<std::string>{"check 0", "check 1", "average -1",
                                      "update -1", "answer 0", "answer 1"}));
}

TEST_F(ContributionTraceTest, RefusedContributionsAreNotRecorded) {
  CreateTraced(std::make_unique<BulkSynchronous>());
  Contribution damaged = Make(0, 1, 1);
  damaged.crc32c ^= 1;
  Push(std::move(damaged));
  Push(Make(7, 1, 1));          // no such rank
  Push(Make(0, INT64_MAX, 1));  // no such step
  Push(Make(0, INT64_MIN, 1));
  EXPECT_EQ(recorder_.waiting(), 0u);
}

TEST_F(ContributionTraceTest, WeightsAreTheSameWithATrace) {
  std::vector<float> weights;
  for (bool traced : {false, true}) {
    if (traced) {
      CreateTraced(std::make_unique<BulkSynchronous>());
    } else {
      Create(2, {});
      Initialize();
    }
    Answer last;
    for (int64_t step : {0, 1, 2}) {
      Push(Make(0, step, 0.3f));
      last = Push(Make(1, step, 0.7f, /*samples=*/3));
    }
    weights.push_back(First(last));
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_GT(recorder_.waiting(), 0u);
}

}  // namespace
}  // namespace tributary
