#pragma once

#include <cstdint>
#include <vector>

#include "common/base/tensor.h"

namespace tributary {

// Where part `part` of n things begins that are cut evenly over `parts`: the
// parts differ by at most one. Part `parts` begins at n.
constexpr int64_t EvenCut(int64_t n, int parts, int part) {
  return n * part / parts;
}

// What one tensor-parallel rank holds of a parameter: extent `dim` consists of
// `groups` equal runs (the three of an attention's in_proj_weight), and the
// rank has elements [begin, end) of each. By default the whole parameter.
struct ParameterSlice {
  int dim = -1;
  int64_t begin = 0;
  int64_t end = 0;
  int groups = 1;

  bool whole() const { return dim < 0; }
  friend bool operator==(const ParameterSlice&,
                         const ParameterSlice&) = default;
};

// Elements [from, from + size) of the whole parameter, in C order, stand at
// [to, to + size) of the slice.
struct SliceRun {
  int64_t from = 0;
  int64_t to = 0;
  int64_t size = 0;
};

// In the order of the slice's elements; `shape` is the whole parameter's.
std::vector<SliceRun> RunsOf(const Shape& shape, const ParameterSlice& slice);

Shape ShapeOfSlice(const Shape& shape, const ParameterSlice& slice);

// Cuts a slice out of the whole parameter, and puts it back in its place.
void SliceParameter(const Shape& shape, const ParameterSlice& slice,
                    const float* whole, float* part);
void PlaceSlice(const Shape& shape, const ParameterSlice& slice,
                const float* part, float* whole);

}  // namespace tributary
