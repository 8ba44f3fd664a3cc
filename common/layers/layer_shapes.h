#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/parameter_spec.h"
#include "common/layers/layer_costs.h"

namespace tributary {

// One layer by itself, before its place in the model is known.
struct LayerNumbers {
  Shape output_shape;
  int num_parameters = 0;  // tensors
  double forward_flops = 0;
  double backward_flops = 0;        // without the gradient of its input
  double input_gradient_flops = 0;  // of that
  int64_t own_elements = 0;         // that it keeps besides inputs and outputs
  int64_t scratch_elements = 0;     // shared by all layers

  // As worker/model/layer.h says of each layer.
  bool reads_input = false;
  bool reads_output = false;
  bool in_place = true;
  bool passes_through = false;
  bool always_writes_input_gradient = false;
};

// Numbers of every kind but a residual. `parameters` are the model's, `first`:
// the layer is the model's first. InvalidArgument says what the layer wants and
// what it gets.
absl::StatusOr<LayerNumbers> NumbersOfLayer(const v1::LayerSpec& spec,
                                            const Shape& input_shape,
                                            const ParameterSpecs& parameters,
                                            bool first);

}  // namespace tributary
