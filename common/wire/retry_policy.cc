// SPDX-License-Identifier: Apache-2.0
#include "common/wire/retry_policy.h"

#include <algorithm>

#include "common/base/mutation.h"

namespace tributary {

bool RetryPolicy::Repeatable(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      return !TRIBUTARY_MUTATED("damage-is-final");
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

absl::Duration RetryPolicy::HoldFor(absl::Duration left) const {
  return std::clamp(left, absl::Milliseconds(1), hold);
}

RetryPolicy::Next RetryPolicy::After(const absl::Status& status,
                                     absl::Duration left) {
  if (!Repeatable(status)) return Next::kFail;
  return left <= absl::ZeroDuration() ? Next::kGiveUp : Next::kRetry;
}

absl::Duration RetryPolicy::Pause(int failures, double jitter) const {
  const absl::Duration backoff =
      std::min(longest_pause, first_pause * (1 << std::min(failures, 10)));
  return backoff * (0.5 + 0.5 * jitter);
}

}  // namespace tributary
