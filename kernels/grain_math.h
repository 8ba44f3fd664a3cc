#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace tributary {

// The order in which a sum over a run of elements is taken, on every device:
// lane l adds the elements l, l + 32, l + 64 ... in that order, in double, then
// halves are folded: lane l += lane l + 16, then l + 8, 4, 2, 1. A warp does
// this as it stands; on the host the lanes are vector registers. Squares and
// products of float32 are exact in double, so both give the same bits.
inline constexpr int kSumLanes = 32;

}  // namespace tributary
