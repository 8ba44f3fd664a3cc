// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary::simulation {

// Units of the simulated clock, which counts microseconds.
inline constexpr int64_t kMilli = 1'000;
inline constexpr int64_t kSecond = 1'000'000;

}  // namespace tributary::simulation
