// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/launch.h"

namespace tributary {

// Helpers of kernels whose threads find their row and column without a
// division.

// Whether rows of `cols` floats can be accessed 16 bytes at a time.
inline bool TakesQuads(int64_t cols, const float* x, const float* y) {
  const uintptr_t bits =
      reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y);
  return cols % 4 == 0 && bits % sizeof(float4) == 0;
}

// Blocks whose threads along x take the columns of a row and along y the rows.
// Short rows share a block.
struct RowsGrid {
  dim3 blocks, threads;
};
inline RowsGrid GridOfRows(int64_t rows, int64_t cols) {
  unsigned width = 1;
  while (width < kWarp && width < cols) width *= 2;
  if (cols > kWarp) {
    width = static_cast<unsigned>(
        std::min<int64_t>(kThreads, (cols + kWarp - 1) / kWarp * kWarp));
  }
  const unsigned height = width < 128 ? 128 / width : 1;
  const auto blocks_x = static_cast<unsigned>(
      std::min<int64_t>((rows + height - 1) / height, 1 << 30));
  const auto blocks_y = static_cast<unsigned>(
      std::min<int64_t>((cols + width - 1) / width, 65535));
  return {dim3(blocks_x, blocks_y), dim3(width, height)};
}

#ifdef __CUDACC__

// Calls use(row, column) for the elements of the thread.
template <typename Use>
__device__ void ForEachPlace(int64_t rows, int64_t cols, Use use) {
  for (int64_t r = blockIdx.x * int64_t{blockDim.y} + threadIdx.y; r < rows;
       r += gridDim.x * int64_t{blockDim.y}) {
    for (int64_t c = blockIdx.y * int64_t{blockDim.x} + threadIdx.x; c < cols;
         c += gridDim.y * int64_t{blockDim.x}) {
      use(r, c);
    }
  }
}

#endif  // __CUDACC__

}  // namespace tributary
