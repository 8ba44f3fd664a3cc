// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace tributary {

// Returns a thread-safe function that draws the delay of each message, in
// microseconds, uniform in [0, max_ms] milliseconds. Tests use it to show that
// timing does not change results. When max_ms is 0, the function is empty.
std::function<int64_t()> MakeMessageDelay(int64_t max_ms, uint64_t seed);

}  // namespace tributary
