// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/host/cuda_ops.h"
#include "tests/gpu/speed.h"

namespace tributary::testing {
namespace {

constexpr int64_t kQuads = int64_t{1} << 24;  // 256 MB in each direction
constexpr size_t kBytes = kQuads * sizeof(float4);
constexpr int kRounds = 20;

__global__ void CopyKernel(int64_t n, const float4* from, float4* to) {
  int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (; i < n; i += int64_t{gridDim.x} * blockDim.x) to[i] = from[i];
}

// GB/s of a call that moves `bytes`, after a warm-up call; 0 when the device
// fails.
template <typename Call>
double Rate(double bytes, Call call) {
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  call();
  cudaEventRecord(begin);
  for (int round = 0; round < kRounds; ++round) call();
  cudaEventRecord(end);
  const bool ok = cudaEventSynchronize(end) == cudaSuccess;
  float ms = 0;
  cudaEventElapsedTime(&ms, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return ok && ms > 0 ? bytes * kRounds / (ms * 1e6) : 0;
}

}  // namespace

double SecondsOnDevice(Ops& ops, const std::function<void()>& calls) {
  if (ops.is_host()) return -1;
  const cudaStream_t stream = static_cast<CudaOps&>(ops).stream();
  cudaEvent_t begin = nullptr, end = nullptr;
  float ms = -1;
  if (cudaEventCreate(&begin) == cudaSuccess &&
      cudaEventCreate(&end) == cudaSuccess &&
      cudaEventRecord(begin, stream) == cudaSuccess) {
    calls();
    cudaEventRecord(end, stream);
    if (cudaEventSynchronize(end) != cudaSuccess ||
        cudaEventElapsedTime(&ms, begin, end) != cudaSuccess) {
      ms = -1;
    }
  }
  if (begin != nullptr) cudaEventDestroy(begin);
  if (end != nullptr) cudaEventDestroy(end);
  return ms < 0 ? -1 : ms * 1e-3;
}

CopyCeilings MeasureCopyCeilings() {
  CopyCeilings ceilings;
  float4 *from = nullptr, *to = nullptr, *host = nullptr;
  if (cudaMalloc(&from, kBytes) == cudaSuccess &&
      cudaMalloc(&to, kBytes) == cudaSuccess &&
      cudaMallocHost(&host, kBytes) == cudaSuccess) {
    cudaMemset(from, 0, kBytes);
    // The faster of the runtime's copy and a copy kernel.
    ceilings.on_device =
        std::max(Rate(2.0 * kBytes,
                      [&] { CopyKernel<<<1 << 16, 256>>>(kQuads, from, to); }),
                 Rate(2.0 * kBytes, [&] {
                   cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice);
                 }));
    ceilings.to_device = Rate(kBytes, [&] {
      cudaMemcpyAsync(to, host, kBytes, cudaMemcpyHostToDevice);
    });
    ceilings.to_host = Rate(kBytes, [&] {
      cudaMemcpyAsync(host, from, kBytes, cudaMemcpyDeviceToHost);
    });
  }
  cudaFreeHost(host);
  cudaFree(to);
  cudaFree(from);
  return ceilings;
}

}  // namespace tributary::testing
