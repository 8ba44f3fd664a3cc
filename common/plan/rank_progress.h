// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace tributary {

// How far the contributions of a rank have come, including those of an earlier
// process of the rank: to one block, to all blocks of a server, or to all
// servers.
struct RankProgress {
  bool initialized = true;    // every block has weights
  int64_t steps = INT64_MAX;  // sent to every block
  int64_t begun = 0;          // sent to some block

  // Adds the progress at another block or server.
  void Add(const RankProgress& other) {
    initialized &= other.initialized;
    steps = std::min(steps, other.steps);
    begun = std::max(begun, other.begun);
  }
};

}  // namespace tributary
