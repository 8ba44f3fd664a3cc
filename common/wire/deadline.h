// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpc/support/time.h>

#include "absl/time/time.h"

namespace tributary {

// A deadline for a call, an alarm or a shutdown of gRPC, measured with the
// steady clock. A std::chrono::system_clock deadline would move with the wall
// clock until gRPC converts it.
inline gpr_timespec DeadlineAfter(absl::Duration timeout) {
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

}  // namespace tributary
