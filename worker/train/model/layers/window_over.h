// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "common/layers/window_plane.h"
#include "kernels/ops.h"

namespace tributary {

// `window` over the last two extents of a sample.
inline Window WindowOver(const Shape& input_shape, const PlaneWindow& window) {
  const size_t rank = input_shape.size();
  return {input_shape[rank - 2], input_shape[rank - 1], window.kernel[0],
          window.kernel[1],      window.stride[0],      window.stride[1],
          window.padding[0],     window.padding[1],     window.dilation[0],
          window.dilation[1]};
}

}  // namespace tributary
