// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace tributary {

// Returns a function that draws the delay of each message, uniform in [0,
// max_ms], for tests that timing does not change results. Empty for max_ms 0.
// The function is thread-safe.
std::function<int64_t()> MakeMessageDelay(int64_t max_ms, uint64_t seed);

}  // namespace tributary
