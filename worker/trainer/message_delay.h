#pragma once

#include <cstdint>
#include <functional>

namespace tributary {

// Draws how long each message is held back, uniform in [0, max_ms], for tests
// that show that timing decides nothing. None for 0. Safe for any thread.
std::function<int64_t()> MakeMessageDelay(int64_t max_ms, uint64_t seed);

}  // namespace tributary
