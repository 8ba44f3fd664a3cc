// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/base/device_mesh.h"
#include "common/base/parameter_slice.h"
#include "common/base/tensor.h"

namespace tributary {

// A tensor of the model, trained or kept as a running average. It has the name
// that torch.nn.Sequential would give it.
struct ParameterSpec {
  std::string name;
  Shape shape;
  // Set when the workers' mesh partitions the model: the workers that hold the
  // tensor and, for a slice, the whole parameter and the part that is in the
  // slice. A slice's name is the parameter's name, "@" and the tensor rank.
  Holders holders = {};
  std::string whole_name = {};  // empty: the tensor is not a slice
  Shape whole_shape = {};
  ParameterSlice slice = {};
  // Above 0: the tensor is a running average, such as a batch norm's mean, and
  // not a weight. Workers then send the batch's own value instead of a
  // gradient, and an update moves the tensor this fraction of the way towards
  // that value (common/optimizer/optimizer.h).
  double running_momentum = 0;

  bool is_running() const { return running_momentum > 0; }
  int64_t size() const { return NumElements(shape); }
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

// In forward order. The index of a parameter is its index here.
using ParameterSpecs = std::vector<ParameterSpec>;

}  // namespace tributary
