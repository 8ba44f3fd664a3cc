// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace tributary {

// Elements [begin, begin + size) of a matrix with `columns` columns, stored row
// by row. size is at least 1.
struct FactoredSlice {
  int64_t columns = 1;
  int64_t begin = 0;
  int64_t size = 0;

  TRIBUTARY_HOST_DEVICE int64_t first_row() const { return begin / columns; }
  // Rows that the slice touches, the first and the last perhaps in part.
  TRIBUTARY_HOST_DEVICE int64_t rows() const {
    return (begin + size - 1) / columns - first_row() + 1;
  }
};

// x^2, which is below 2^51 units, rounded to a multiple of `unit`, a power of
// two. Adding and subtracting 1.5 * 2^52 units leaves no smaller bits.
TRIBUTARY_HOST_DEVICE inline double RoundedSquare(float x, double unit) {
  const double large = 6755399441055744.0 * unit;
  return (double{x} * double{x} + large) - large;
}

}  // namespace tributary
