// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "server/store/weights_snapshot.h"

namespace tributary {

// A call that waits for weights of a block.
struct BlockWaiter {
  enum class Want {
    kFinished,  // weights that a worker may read after `value` steps
    kVersion,   // this version or a later one
    kExact,     // this version
  };
  Want want;
  int64_t value;
  int64_t deadline_micros;
  WeightsDone done;
};

// A callback with the response to a call; run it outside the lock.
using ReadyAnswer = std::function<void()>;

// Call it without holding a lock.
inline void RunAll(const std::vector<ReadyAnswer>& ready) {
  for (const ReadyAnswer& answer : ready) answer();
}

}  // namespace tributary
