// SPDX-License-Identifier: Apache-2.0
// Chooses the kernels of attention.
#include "kernels/cuda/attention/attention_work.cuh"
#include "kernels/cuda/model_launchers.h"

namespace tributary {
namespace {

// dots[row] = dy . y of each query, for the derivative of the softmax.
__global__ void OutputDotKernel(AttentionShape s, int64_t rows, bool rounded,
                                const float* y, const float* dy, float* dots) {
  for (int64_t at = WarpIndex(); at < rows; at += WarpCount()) {
    const AttentionHead head = AttentionHeadAt(s, at / s.queries);
    const int64_t row = head.out + at % s.queries * s.out.row;
    const double dot = WarpSum(s.dim, [=](int64_t d) {
      const float g = dy[row + d];
      return double{rounded ? RoundToBfloat16(g) : g} * double{y[row + d]};
    });
    if (Lane() == 0) dots[at] = static_cast<float>(dot);
  }
}

// Whether all rows of the arrays allow 16-byte accesses.
template <typename... Arrays>
bool AllowsQuads(const AttentionShape& s, Arrays... arrays) {
  int64_t floats = s.dim;
  for (const AttentionStrides& strides : {s.query, s.key, s.out}) {
    floats |= strides.batch | strides.row | strides.head;
  }
  const uintptr_t bytes = (reinterpret_cast<uintptr_t>(arrays) | ...);
  return floats % 4 == 0 && bytes % sizeof(float4) == 0;
}

DeviceStatus UsesTensorCores(const AttentionShape& s, bool rounded,
                             bool* uses) {
  *uses = false;
  return rounded && s.dim <= kMaxTensorDim ? FindTensorCores(uses)
                                           : DeviceStatus();
}

}  // namespace

DeviceStatus LaunchAttention(cudaStream_t stream, const AttentionShape& s,
                             bool rounded, const float* q, const float* k,
                             const float* v, float* y, float* log_sum) {
  if (s.rows() == 0) return DeviceStatus();
  const AttentionCall call{s, rounded, AllowsQuads(s, q, k, v, y)};
  const AttentionForwardArrays arrays{q, k, v, y, log_sum};
  bool tensor_cores = false;
  if (DeviceStatus status = UsesTensorCores(s, rounded, &tensor_cores);
      !status.ok()) {
    return status;
  }
  return tensor_cores ? LaunchTensorForward(stream, call, arrays)
                      : LaunchForward(stream, call, arrays);
}

DeviceStatus LaunchAttentionBackward(
    cudaStream_t stream, const AttentionShape& s, bool rounded, const float* q,
    const float* k, const float* v, const float* y, const float* log_sum,
    const float* dy, float* dots, float* dq, float* dk, float* dv) {
  if (s.rows() == 0) return DeviceStatus();
  OutputDotKernel<<<WarpBlocks(s.rows()), kThreads, 0, stream>>>(
      s, s.rows(), rounded, y, dy, dots);
  if (DeviceStatus status = CudaStatus(cudaGetLastError()); !status.ok()) {
    return status;
  }
  const AttentionCall call{s, rounded, AllowsQuads(s, q, k, v, dy, dq, dk, dv)};
  const AttentionBackwardArrays arrays{q, k, v, log_sum, dy, dots, dq, dk, dv};
  bool tensor_cores = false;
  if (DeviceStatus status = UsesTensorCores(s, rounded, &tensor_cores);
      !status.ok()) {
    return status;
  }
  return tensor_cores ? LaunchTensorBackward(stream, call, arrays)
                      : LaunchBackward(stream, call, arrays);
}

}  // namespace tributary
