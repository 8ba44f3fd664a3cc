#include <algorithm>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vectorize.h"

namespace tributary {
namespace {

// Rows of op(b) that are packed at a time.
constexpr int64_t kDepth = 128;

TRIBUTARY_CLONES void AddScaledRow(int64_t n, float scale, const float* x,
                                   float* y) {
  TRIBUTARY_IVDEP
  for (int64_t j = 0; j < n; ++j) y[j] += scale * x[j];
}

void ScaleOutput(int64_t n, float beta, float* c) {
  if (beta == 0) {  // c may hold anything, NaN too
    std::fill_n(c, n, 0.0f);
    return;
  }
  for (int64_t i = 0; i < n; ++i) c[i] *= beta;
}

}  // namespace

void CpuGemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
             int64_t k, float alpha, const float* a, const float* b, float beta,
             float* c) {
  ScaleOutput(m * n, beta, c);
  std::vector<float> packed;
  for (int64_t first = 0; first < k; first += kDepth) {
    const int64_t depth = std::min(kDepth, k - first);
    const float* rows = b + first * n;  // [depth, n]
    if (transpose_b) {
      packed.resize(static_cast<size_t>(depth * n));
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t p = 0; p < depth; ++p) {
          packed[static_cast<size_t>(p * n + j)] = b[j * k + first + p];
        }
      }
      rows = packed.data();
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < depth; ++p) {
        const int64_t q = first + p;
        const float scale = alpha * (transpose_a ? a[q * m + i] : a[i * k + q]);
        AddScaledRow(n, scale, rows + p * n, c + i * n);
      }
    }
  }
}

void PinBlasThreads() {}

}  // namespace tributary
