// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace tributary {

// How many of a rank's contributions have reached one block, all blocks of a
// server, or all servers. Those of an earlier process of the rank count, too.
struct RankProgress {
  // `steps` of a rank that contributes to no block: its stage of the model has
  // no parameters.
  static constexpr int64_t kNoBlock = INT64_MAX;

  bool initialized = true;   // every block has weights
  int64_t steps = kNoBlock;  // sent to every block
  int64_t begun = 0;         // sent to some block

  // Adds the progress at another block or server.
  void Add(const RankProgress& other) {
    initialized &= other.initialized;
    steps = std::min(steps, other.steps);
    begun = std::max(begun, other.begun);
  }
};

}  // namespace tributary
