// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_ops.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/gemm.h"
#include "kernels/device.h"

namespace tributary {

CpuOps::CpuOps(ProductPrecision precision) : precision_(precision) {
  PinBlasThreads();
}

void* CpuOps::Allocate(size_t bytes) {
  constexpr size_t kAlignment = 64;
  const size_t rounded =
      (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  return std::aligned_alloc(kAlignment, rounded);
}

void CpuOps::Free(void* memory) { std::free(memory); }

void CpuOps::CopyIn(void* device, const void* host, size_t bytes) {
  if (bytes > 0) std::memmove(device, host, bytes);
}

void CpuOps::CopyOut(void* host, const void* device, size_t bytes) {
  if (bytes > 0) std::memmove(host, device, bytes);
}

void CpuOps::Fill(int64_t n, float value, float* y) {
  std::fill_n(y, n, value);
}

void CpuOps::Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                  int64_t k, float alpha, const float* a, const float* b,
                  float beta, float* c) {
  CpuProduct(precision_, transpose_a, transpose_b, m, n, k, alpha,
             {a, transpose_a ? m : k}, {b, transpose_b ? k : n}, beta, c, n);
}

std::unique_ptr<Ops> CreateCpuOps() {
  return CreateCpuOps(ProductPrecision::kFloat32);
}

std::unique_ptr<Ops> CreateCpuOps(ProductPrecision precision) {
  return std::make_unique<CpuOps>(precision);
}

}  // namespace tributary
