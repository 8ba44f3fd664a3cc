#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "common/status/status_macros.h"
#include "worker/model/device_array.h"

namespace tributary {

// Memory that all layers of a model use in turn: what a layer leaves there is
// gone when the next one runs. Layers reserve when they are built and ask for
// the memory when they run.
class Scratch {
 public:
  void Reserve(int64_t floats) { floats_ = std::max(floats_, floats); }

  // Once, when every layer has reserved. ResourceExhausted as DeviceArray.
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
