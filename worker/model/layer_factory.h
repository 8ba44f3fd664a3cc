#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "tributary/v1/job.pb.h"
#include "worker/model/layer.h"

namespace tributary {

struct LayerOptions {
  Ops* ops = nullptr;
  int64_t max_rows = 0;
  uint64_t seed = 0;  // of dropout
  int32_t index = 0;  // place in the model, from 0
};

// The layer that `spec` asks for, taking samples of `input_shape`.
// InvalidArgument names the layer, what it wants and what it gets;
// ResourceExhausted when the device has no room.
absl::StatusOr<std::unique_ptr<Layer>> CreateLayer(const v1::LayerSpec& spec,
                                                   const Shape& input_shape,
                                                   const LayerOptions& options);

}  // namespace tributary
