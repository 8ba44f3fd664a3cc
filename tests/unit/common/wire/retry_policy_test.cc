// SPDX-License-Identifier: Apache-2.0
#include "common/wire/retry_policy.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr RetryPolicy kPolicy;

TEST(RetryPolicyTest, PausesDoubleUpToASecond) {
  EXPECT_EQ(kPolicy.Pause(0, 1), absl::Milliseconds(10));
  EXPECT_EQ(kPolicy.Pause(0, 0), absl::Milliseconds(5));
  EXPECT_EQ(kPolicy.Pause(3, 1), absl::Milliseconds(80));
  EXPECT_EQ(kPolicy.Pause(7, 1), absl::Seconds(1));
  EXPECT_EQ(kPolicy.Pause(1'000'000, 1), absl::Seconds(1));
}

TEST(RetryPolicyTest, TheServerHoldsACallNoLongerThanTimeIsLeft) {
  EXPECT_EQ(kPolicy.HoldFor(absl::Seconds(60)), absl::Seconds(2));
  EXPECT_EQ(kPolicy.HoldFor(absl::Seconds(1)), absl::Seconds(1));
  EXPECT_EQ(kPolicy.HoldFor(-absl::Seconds(1)), absl::Milliseconds(1));
}

TEST(RetryPolicyTest, RefusalsAreFinalAndOverloadIsNot) {
  const auto after = [](absl::StatusCode code, absl::Duration left) {
    return RetryPolicy::After(absl::Status(code, "x"), left);
  };
  using Next = RetryPolicy::Next;
  const absl::Duration left = absl::Seconds(1);
  EXPECT_EQ(after(absl::StatusCode::kResourceExhausted, left), Next::kRetry);
  EXPECT_EQ(after(absl::StatusCode::kDataLoss, left), Next::kRetry);
  EXPECT_EQ(after(absl::StatusCode::kUnavailable, absl::ZeroDuration()),
            Next::kGiveUp);
  EXPECT_EQ(after(absl::StatusCode::kFailedPrecondition, left), Next::kFail);
  EXPECT_EQ(after(absl::StatusCode::kInvalidArgument, absl::ZeroDuration()),
            Next::kFail);
}

TEST(RetryPolicyTest, AServerIsSilentHalfASecondAfterItsTime) {
  EXPECT_FALSE(kPolicy.IsSilent(absl::Milliseconds(2499)));
  EXPECT_TRUE(kPolicy.IsSilent(absl::Milliseconds(2500)));
}

}  // namespace
}  // namespace tributary
