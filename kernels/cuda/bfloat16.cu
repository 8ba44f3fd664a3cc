// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include "kernels/bfloat16_math.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launchers.h"

namespace tributary {
namespace {

// Stores the upper halves of RoundToBfloat16, so that both devices round alike.
__global__ void ToBfloat16Kernel(int64_t n, const float* x, uint16_t* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    y[i] = static_cast<uint16_t>(FloatBits(RoundToBfloat16(x[i])) >> 16);
  }
}

static_assert(sizeof(__nv_bfloat16) == sizeof(uint16_t));

}  // namespace

DeviceStatus LaunchToBfloat16(cudaStream_t stream, int64_t n, const float* x,
                              uint16_t* y) {
  if (n == 0) return DeviceStatus();
  ToBfloat16Kernel<<<Blocks(n), kThreads, 0, stream>>>(n, x, y);
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
