// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/layers/model_costs.h"
#include "common/layers/tensor_cuts.h"

namespace tributary {

// A collective over a layer's arrays among the ranks of a tensor-parallel
// group. Nothing is computed during it.
struct LayerCollective {
  int64_t elements = 0;  // of the whole array, per sample
  bool gather = false;   // all-gather: half the traffic of an all-reduce
};

// One rank's part of a top-level layer.
struct LayerShare {
  double forward_flops = 0;
  double backward_flops = 0;
  int64_t kept_elements = 0;
  std::vector<LayerCollective> forward;
  std::vector<LayerCollective> backward;
};

// One rank's part of a model that several ranks share by tensor parallelism
// (Shoeybi et al. 2019).
struct ModelShare {
  std::vector<LayerShare> layers;
  std::vector<int64_t> parameter_elements;  // [tensor]
  // [tensor]: the tensor's gradient is final after this fraction of the
  // backward pass of the tensor's top-level layer.
  std::vector<double> final_after_share;
  std::vector<int> layer_of_parameter;
};

// The share of the rank that holds most. `cuts` must be of the same model.
ModelShare ShareOfModel(const ModelCosts& model, const TensorCuts& cuts);

}  // namespace tributary
