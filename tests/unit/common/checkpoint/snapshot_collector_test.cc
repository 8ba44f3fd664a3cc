// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/snapshot_collector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

// Two blocks of one and two elements, one state.
class SnapshotCollectorTest : public ::testing::Test {
 protected:
  SnapshotCollectorTest() {
    for (int i = 0; i < 2; ++i) {
      blocks_[i].index = i;
      blocks_[i].size = i + 1;
      blocks_[i].slices.push_back(
          {.parameter = i, .begin = 0, .end = blocks_[i].size});
    }
  }

  void Add(int64_t step, int block, float value) {
    const int64_t size = blocks_[block].size;
    SharedBuffer weights(size);
    std::vector<float> state(size, -value);
    std::fill_n(weights.data(), size, value);
    collector_.Add(step,
                   BlockSnapshot({.steps = step,
                                  .block = &blocks_[block],
                                  .weights = weights,
                                  .state = {state.data()}}),
                   /*pause_micros=*/10);
    state.assign(size, 99);  // as training does after the cut
  }
  void AddAll(int64_t step) {
    Add(step, 0, 1);
    Add(step, 1, 2);
  }

  Block blocks_[2];
  SnapshotCollector collector_{2};
};

TEST_F(SnapshotCollectorTest, AStepIsDueOnceEveryBlockHasCome) {
  Add(20, 1, 5);
  EXPECT_FALSE(collector_.due());
  Add(30, 0, 7);  // a block of the next step comes before
  EXPECT_FALSE(collector_.due());
  Add(20, 0, 3);
  ASSERT_TRUE(collector_.due());
  const SnapshotCollector::Work work = collector_.Take();
  EXPECT_FALSE(collector_.due());
  EXPECT_EQ(work.snapshot.step, 20);
  EXPECT_EQ(work.snapshot.pause_micros, 20);
  EXPECT_TRUE(work.failed.empty());
  const std::vector<BlockImage> images = work.snapshot.Images();
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].num_elements, 1) << "in the shard's order";
  EXPECT_EQ(images[0].weights[0], 3);
  EXPECT_EQ(images[1].weights[1], 5);
  EXPECT_EQ(images[1].state[0][1], -5) << "the state is a copy";
}

// Step 10 is written next, and step 40 is the one of the job's end.
TEST_F(SnapshotCollectorTest, ASecondStepThatWaitsGivesWayToALaterOne) {
  for (const int64_t step : {10, 20, 30, 40}) AddAll(step);
  SnapshotCollector::Work work = collector_.Take();
  EXPECT_EQ(work.snapshot.step, 10);
  EXPECT_TRUE(work.failed.empty()) << "results are in the order of steps";
  ASSERT_TRUE(collector_.due());
  collector_.Written();
  work = collector_.Take();
  EXPECT_EQ(work.snapshot.step, 40);
  EXPECT_EQ(work.snapshot.blocks.size(), 2u);
  ASSERT_EQ(work.failed.size(), 2u);
  EXPECT_EQ(work.failed[0].step, 20);
  EXPECT_EQ(work.failed[1].step, 30);
  EXPECT_DOUBLE_EQ(work.failed[1].pause_seconds, 20e-6);
  EXPECT_THAT(work.failed[1].file.status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "the checkpoint of step 30 was still waiting to be "
                       "written when that of step 40 was due"));
  EXPECT_FALSE(collector_.due());
}

// Step 20 has the best weights, and then step 50.
TEST_F(SnapshotCollectorTest, TheBestStepGivesWayToABetterOneAlone) {
  AddAll(10);
  collector_.Take();  // is being written
  AddAll(20);
  collector_.SetBest(20);
  for (const int64_t step : {30, 40, 50}) AddAll(step);
  collector_.SetBest(50);
  for (const int64_t step : {60, 70}) AddAll(step);
  std::vector<int64_t> written, failed;
  while (collector_.due()) {
    collector_.Written();
    const SnapshotCollector::Work work = collector_.Take();
    for (const WrittenSnapshot& one : work.failed) failed.push_back(one.step);
    written.push_back(work.snapshot.step);
  }
  EXPECT_EQ(written, std::vector<int64_t>({50, 70}));
  EXPECT_EQ(failed, std::vector<int64_t>({20, 30, 40, 60}));
}

TEST_F(SnapshotCollectorTest, TheBestStepIsKeptBesideTheNextOne) {
  AddAll(10);  // nobody has taken it yet
  AddAll(20);
  collector_.SetBest(20);
  AddAll(30);
  AddAll(40);
  for (const int64_t step : {10, 20, 40}) {
    EXPECT_EQ(collector_.Take().snapshot.step, step);
    collector_.Written();
  }
}

TEST_F(SnapshotCollectorTest, OneStepWaitsWhileTheOneBeforeIsWritten) {
  AddAll(10);
  collector_.Take();  // is being written
  AddAll(20);
  AddAll(30);
  collector_.Written();
  SnapshotCollector::Work work = collector_.Take();
  EXPECT_EQ(work.snapshot.step, 30);
  EXPECT_EQ(work.failed.size(), 1u);
  collector_.Written();
  EXPECT_FALSE(collector_.due());
  AddAll(40);
  AddAll(50);
  EXPECT_EQ(collector_.Take().snapshot.step, 40) << "nobody wrote";
}

}  // namespace
}  // namespace tributary
