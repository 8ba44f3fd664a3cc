// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/steps/asked_checkpoint.h"

#include <gtest/gtest.h>

#include <vector>

namespace tributary {
namespace {

constexpr int64_t kTotal = 100;

// Workers that wait after these steps.
std::vector<Place> Paused(const std::vector<int64_t>& steps) {
  std::vector<Place> workers(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    workers[i].alive = true;
    workers[i].stop_bound = steps[i];
  }
  return workers;
}

TEST(AskedCheckpointTest, ItIsOfTheHighestStep) {
  AskedCheckpoint asked(/*steps_a_round=*/1);
  asked.Ask();
  EXPECT_FALSE(asked.Settle(Paused({6, -1}), /*start_step=*/4, kTotal));
  EXPECT_EQ(asked.hold(), 1u);
  EXPECT_TRUE(asked.Settle(Paused({6, 5}), /*start_step=*/4, kTotal));
  EXPECT_EQ(asked.step(), 6);
  EXPECT_EQ(asked.hold(), 1u);
}

// The worker that had begun step 5 was lost, and another one took its place.
TEST(AskedCheckpointTest, WhereAPlanStartsThereIsOneAlready) {
  AskedCheckpoint asked(/*steps_a_round=*/1);
  asked.Ask();
  EXPECT_FALSE(asked.Settle(Paused({4, 4}), /*start_step=*/4, kTotal));
  EXPECT_EQ(asked.hold(), 0u);
  EXPECT_EQ(asked.step(), 0);
  EXPECT_FALSE(asked.ends_with_job());
  asked.Ask();
  EXPECT_TRUE(asked.Settle(Paused({5, 4}), /*start_step=*/4, kTotal));
  EXPECT_EQ(asked.step(), 5);
}

TEST(AskedCheckpointTest, BeforeTheFirstStepThereIsNothingToSave) {
  AskedCheckpoint asked(/*steps_a_round=*/1);
  asked.Ask();
  EXPECT_FALSE(asked.Settle(Paused({0, 0}), /*start_step=*/0, kTotal));
  EXPECT_EQ(asked.hold(), 0u);
}

}  // namespace
}  // namespace tributary
