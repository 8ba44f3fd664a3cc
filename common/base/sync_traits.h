// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// How servers apply contributions (docs/consistency.md).
enum class ApplyMode {
  kBulk,      // all workers' together: no worker falls behind
  kBackup,    // the first workers' together: a late worker skips steps
  kSeparate,  // each on its own
};

// The meaning of a job's synchronization policy, made once from the job. Code
// asks these fields instead of the policy's kind.
struct SyncTraits {
  const char* name = "bsp";  // the policy's key in the job file
  ApplyMode mode = ApplyMode::kBulk;
  // True if each worker updates its own weights and sends the servers what has
  // changed after every `period` steps: servers have no weights in between.
  bool updates_locally = false;
  int64_t period = 1;
  // By how many steps the weights are late at which gradients are computed:
  // exactly this many, in every step that has so many before it.
  int64_t delay = 0;

  // True if all workers have equal weights after each step, whatever the
  // timing.
  bool bulk_synchronous() const {
    return mode == ApplyMode::kBulk && !updates_locally;
  }
};

}  // namespace tributary
