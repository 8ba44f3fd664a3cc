// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tributary {

// Extents in C order; empty is a scalar.
using Shape = std::vector<int64_t>;

// Number of elements of a shape.
inline int64_t NumElements(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

// A view of float32 memory, on the host or on a device. Does not own it.
struct TensorView {
  float* data = nullptr;
  Shape shape;

  int64_t size() const { return NumElements(shape); }
};

}  // namespace tributary
