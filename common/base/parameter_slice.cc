// SPDX-License-Identifier: Apache-2.0
#include "common/base/parameter_slice.h"

#include <algorithm>

namespace tributary {

// With the parameter seen as [outer, groups, extent, inner], the slice is [:,
// :, begin to end, :].
std::vector<SliceRun> RunsOf(const Shape& shape, const ParameterSlice& slice) {
  if (slice.whole()) return {{0, 0, NumElements(shape)}};
  int64_t runs = slice.groups, inner = 1;
  for (int d = 0; d < slice.dim; ++d) runs *= shape[d];
  for (size_t d = slice.dim + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t stride = shape[slice.dim] / slice.groups * inner;
  const int64_t size = (slice.end - slice.begin) * inner;
  std::vector<SliceRun> all;
  if (size == 0) return all;
  for (int64_t run = 0; run < runs; ++run) {
    all.push_back({run * stride + slice.begin * inner, run * size, size});
  }
  return all;
}

Shape ShapeOfSlice(const Shape& shape, const ParameterSlice& slice) {
  Shape part = shape;
  if (!slice.whole()) {
    part[slice.dim] = slice.groups * (slice.end - slice.begin);
  }
  return part;
}

void SliceParameter(const Shape& shape, const ParameterSlice& slice,
                    const float* whole, float* part) {
  for (const SliceRun& run : RunsOf(shape, slice)) {
    std::copy_n(whole + run.from, run.size, part + run.to);
  }
}

void PlaceSlice(const Shape& shape, const ParameterSlice& slice,
                const float* part, float* whole) {
  for (const SliceRun& run : RunsOf(shape, slice)) {
    std::copy_n(part + run.to, run.size, whole + run.from);
  }
}

}  // namespace tributary
