// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/tensor.h"

namespace tributary {

// The first element of part `part` when n elements are split evenly into
// `parts`; sizes differ by at most one. For part == parts it is n.
constexpr int64_t EvenCut(int64_t n, int parts, int part) {
  return n * part / parts;
}

// The slice of a parameter on one tensor-parallel rank. Dimension `dim`
// consists of `groups` equal runs (such as the three of an attention's
// in_proj_weight), and the slice has elements [begin, end) of each run. The
// default is the whole parameter.
struct ParameterSlice {
  int dim = -1;
  int64_t begin = 0;
  int64_t end = 0;
  int groups = 1;

  bool whole() const { return dim < 0; }
  friend bool operator==(const ParameterSlice&,
                         const ParameterSlice&) = default;
};

// Elements [from, from + size) of the whole parameter, in C order, are elements
// [to, to + size) of the slice.
struct SliceRun {
  int64_t from = 0;
  int64_t to = 0;
  int64_t size = 0;
};

// The runs in the order of the slice's elements. shape: the whole parameter's.
std::vector<SliceRun> RunsOf(const Shape& shape, const ParameterSlice& slice);

Shape ShapeOfSlice(const Shape& shape, const ParameterSlice& slice);

// SliceParameter copies the slice out of the whole parameter; PlaceSlice copies
// it back.
void SliceParameter(const Shape& shape, const ParameterSlice& slice,
                    const float* whole, float* part);
void PlaceSlice(const Shape& shape, const ParameterSlice& slice,
                const float* part, float* whole);

}  // namespace tributary
