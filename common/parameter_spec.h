#pragma once

#include <string>
#include <vector>

#include "common/tensor.h"

namespace tributary {

// A trainable tensor: its name as torch.nn.Sequential gives it and its shape.
struct ParameterSpec {
  std::string name;
  Shape shape;

  int64_t size() const { return NumElements(shape); }
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

// In forward order; the index of a parameter is its place here.
using ParameterSpecs = std::vector<ParameterSpec>;

}  // namespace tributary
