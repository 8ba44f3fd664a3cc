#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tributary/v1/job.pb.h"
#include "worker/model/layer.h"
#include "worker/model/scratch.h"

namespace tributary {

class TensorCuts;
class TensorGroup;

struct LayerOptions {
  Ops* ops = nullptr;
  int64_t max_rows = 0;
  Scratch* scratch = nullptr;  // outlives the layer
  std::string name;            // place in the model: "3", "3.body.0"
  bool first = false;          // of the model
  // Parameters of the layers before it, by which it may tie itself to one.
  const ParameterSpecs* earlier = nullptr;
  uint64_t seed = 0;        // of dropout
  int32_t dropout_key = 0;  // tells a dropout from the others of the model
  // How the layers are cut over the ranks of a group; both or none.
  const TensorCuts* cuts = nullptr;
  TensorGroup* group = nullptr;  // outlives the layer
};

// The layer that `spec` asks for, taking samples of `input_shape`.
// InvalidArgument names the layer, what it wants and what it gets;
// ResourceExhausted when the device has no room.
absl::StatusOr<std::unique_ptr<Layer>> CreateLayer(const v1::LayerSpec& spec,
                                                   const Shape& input_shape,
                                                   const LayerOptions& options);

}  // namespace tributary
