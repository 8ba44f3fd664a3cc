#pragma once

#include <vector>

#include "common/cost/cost_inputs.h"
#include "common/cost/layer_costs.h"

namespace tributary {

// Layers of one parameter each, 1 FLOP forward and 2 backward for a sample,
// outputs of one element.
inline ModelCosts SimpleModel(const std::vector<int64_t>& parameters) {
  ModelCosts model;
  for (size_t i = 0; i < parameters.size(); ++i) {
    LayerCost layer;
    layer.kind = "conv2d";  // none that tensor parallelism cuts
    layer.input_shape = layer.output_shape = {1};
    layer.first_parameter = static_cast<int>(i);
    layer.num_parameters = 1;
    layer.parameter_elements = parameters[i];
    layer.forward_flops = 1;
    layer.backward_flops = 2;
    layer.kept_elements = 1;
    model.layers.push_back(layer);
    model.parameter_sizes.push_back(parameters[i]);
  }
  return model;
}

// A worker of the simple model for one sample; what is not set is infinitely
// fast.
inline CostInputs SimpleInputs(const ModelCosts& model, Exchange exchange,
                               int workers) {
  CostInputs inputs;
  inputs.model = &model;
  inputs.strategy.exchange = exchange;
  inputs.strategy.bucket_bytes = 64 << 20;
  inputs.workers = workers;
  inputs.global_rows = workers;
  return inputs;
}

}  // namespace tributary
