// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace tributary {

// The order of additions in a sum over a run of elements, the same on every
// device. Lane l adds the elements l, l + 32, l + 64, ... in double. Then the
// lanes are folded in halves: lane l += lane l + 16, then l + 8, 4, 2, 1. On
// the device the lanes are the threads of a warp, on the host elements of
// vector registers. Squares and products of float32 are exact in double, so
// both give the same bits.
inline constexpr int kSumLanes = 32;

}  // namespace tributary
