// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/sum_and_update.h"

namespace tributary {

// Runs `version` and returns `crc` extended by the bytes of the new weights
// (crc32c.h), which are read while the cache has them. Sets call.fold.
uint32_t UpdateAndChecksum(const SumAndUpdateVersion& version,
                           const OptimizerStep& step, SumAndUpdate call,
                           uint32_t crc);

}  // namespace tributary
