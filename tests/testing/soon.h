// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace tributary::testing {

// Timeout of any wait, long enough for a busy machine.
inline constexpr absl::Duration kSoon = absl::Seconds(100);

}  // namespace tributary::testing
