// SPDX-License-Identifier: Apache-2.0
#include "server/store/statistics/statistics_calls.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;
constexpr StatisticsKind kNorm = StatisticsKind::kGradientNorm;
constexpr int64_t kLater = 1000;  // a deadline, in microseconds

// Shard 0 of two, with one block of one grain each.
class StatisticsCallsTest : public ::testing::Test {
 protected:
  StatisticsDone Into(absl::StatusOr<std::vector<double>>* answer) {
    return [answer](const auto& values) { *answer = values; };
  }

  const PartitionPlan plan_ =
      PartitionPlan::Create({{"w", {3}}, {"x", {3}}}, /*num_shards=*/2,
                            /*bucket_bytes=*/1 << 16)
          .value();
  StatisticsCalls calls_{plan_, /*shard=*/0, Optimizer({})};
  absl::StatusOr<std::vector<double>> answer_ = absl::UnknownError("none yet");
};

TEST_F(StatisticsCallsTest, AWaitingCallGetsTheSumsOnceTheyAreComplete) {
  calls_.Read(4, kNorm, kLater, Into(&answer_));
  EXPECT_THAT(answer_.status(),
              StatusIs(absl::StatusCode::kUnknown, "none yet"));
  const StatisticsCalls::Complete complete =
      calls_.AddBlock(4, kNorm, /*block=*/0, {2.5});
  EXPECT_TRUE(complete.local);
  EXPECT_FALSE(complete.all) << "shard 1 is missing";
  TRIBUTARY_ASSERT_OK(answer_);
  EXPECT_EQ(*answer_, std::vector<double>{2.5});
  EXPECT_EQ(calls_.MissingShards(), std::vector<int>{1});
}

TEST_F(StatisticsCallsTest, TheLastShardCompletesTheStep) {
  calls_.AddBlock(4, kNorm, /*block=*/0, {2.5});
  const absl::StatusOr<bool> complete = calls_.AddShard(4, kNorm, 1, {1.5});
  TRIBUTARY_ASSERT_OK(complete);
  EXPECT_TRUE(*complete);
  EXPECT_EQ(calls_.Sums(4, kNorm),
            (std::vector<std::vector<double>>{{1.5, 2.5}}))
      << "shard 0 holds x, shard 1 holds w";
}

TEST_F(StatisticsCallsTest, AnExpiredCallNamesItsStep) {
  calls_.Read(4, kNorm, kLater, Into(&answer_));
  std::vector<BlockState::Ready> ready;
  calls_.TakeExpired(kLater - 1, &ready);
  EXPECT_TRUE(ready.empty());
  calls_.TakeExpired(kLater, &ready);
  RunAll(ready);
  EXPECT_THAT(answer_.status(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                         "step 5 of shard 0"));
}

TEST_F(StatisticsCallsTest, ForgottenSumsAreRefused) {
  calls_.ForgetBefore(5);
  calls_.Read(4, kNorm, kLater, Into(&answer_));
  EXPECT_THAT(answer_.status(),
              StatusIs(absl::StatusCode::kOutOfRange, "forgotten"));
}

}  // namespace
}  // namespace tributary
