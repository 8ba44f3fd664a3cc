// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_array.h"

namespace tributary {

// Temporary memory that all layers of a model share. Its contents are lost when
// the next layer runs. Layers reserve their need when they are built and use
// the memory when they run.
class Scratch {
 public:
  void Reserve(int64_t floats) { floats_ = std::max(floats_, floats); }

  // Call it once, after all layers have reserved. Errors as in DeviceArray.
  absl::Status Allocate(Ops* ops) {
    if (floats_ == 0) return absl::OkStatus();
    TRIBUTARY_ASSIGN_OR_RETURN(memory_,
                               DeviceArray<float>::Allocate(ops, floats_));
    return absl::OkStatus();
  }

  float* data() const { return memory_.data(); }

 private:
  int64_t floats_ = 0;
  DeviceArray<float> memory_;
};

}  // namespace tributary
