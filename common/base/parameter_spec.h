#pragma once

#include <string>
#include <vector>

#include "common/base/device_mesh.h"
#include "common/base/parameter_slice.h"
#include "common/base/tensor.h"

namespace tributary {

// A tensor of the model, trained or kept as a running average: its name as
// torch.nn.Sequential gives it and its shape.
struct ParameterSpec {
  std::string name;
  Shape shape;
  // Where the workers' mesh cuts the model: who holds it, and, of a slice,
  // which part of which parameter it is. A slice's name has "@" and its tensor
  // rank behind the parameter's.
  Holders holders = {};
  std::string whole_name = {};  // empty: it is no slice
  Shape whole_shape = {};
  ParameterSlice slice = {};
  // Above 0: no weight but a running average, of a batch norm's mean say. What
  // comes in its gradient's place is the batch's own value, and an update moves
  // it so far there (kernels/optimizer.h).
  double running_momentum = 0;

  bool is_running() const { return running_momentum > 0; }
  int64_t size() const { return NumElements(shape); }
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

// In forward order; the index of a parameter is its place here.
using ParameterSpecs = std::vector<ParameterSpec>;

}  // namespace tributary
