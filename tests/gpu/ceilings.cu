#include <cuda_runtime.h>

#include <cstdint>

#include "tests/gpu/speed.h"

namespace tributary::testing {
namespace {

constexpr int64_t kQuads = int64_t{1} << 24;  // 256 MB each way
constexpr int kRounds = 20;

__global__ void CopyKernel(int64_t n, const float4* from, float4* to) {
  int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (; i < n; i += int64_t{gridDim.x} * blockDim.x) to[i] = from[i];
}

}  // namespace

double CopyCeiling() {
  float4 *from = nullptr, *to = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaMalloc(&from, kQuads * sizeof(float4));
  cudaMalloc(&to, kQuads * sizeof(float4));
  cudaMemset(from, 0, kQuads * sizeof(float4));
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  CopyKernel<<<1 << 16, 256>>>(kQuads, from, to);
  cudaEventRecord(begin);
  for (int round = 0; round < kRounds; ++round) {
    CopyKernel<<<1 << 16, 256>>>(kQuads, from, to);
  }
  cudaEventRecord(end);
  const bool ok = cudaEventSynchronize(end) == cudaSuccess;
  float ms = 0;
  cudaEventElapsedTime(&ms, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaFree(from);
  cudaFree(to);
  if (!ok || ms <= 0) return 0;
  return 2.0 * kQuads * sizeof(float4) * kRounds / (ms * 1e6);
}

}  // namespace tributary::testing
