// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vectorize.h"

namespace tributary {
namespace {

// Rows of op(b) that are packed at once.
constexpr int64_t kDepth = 128;

TRIBUTARY_CLONES void AddScaledRow(int64_t n, float scale, const float* x,
                                   float* y) {
  TRIBUTARY_IVDEP
  for (int64_t j = 0; j < n; ++j) y[j] += scale * x[j];
}

void ScaleOutput(int64_t n, float beta, float* c) {
  if (beta == 0) {  // c may hold anything, even NaN
    std::fill_n(c, n, 0.0f);
    return;
  }
  for (int64_t i = 0; i < n; ++i) c[i] *= beta;
}

}  // namespace

void CpuGemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
             int64_t k, float alpha, MatrixView a, MatrixView b, float beta,
             float* c, int64_t row_c) {
  for (int64_t i = 0; i < m; ++i) ScaleOutput(n, beta, c + i * row_c);
  std::vector<float> packed;
  for (int64_t first = 0; first < k; first += kDepth) {
    const int64_t depth = std::min(kDepth, k - first);
    packed.resize(static_cast<size_t>(depth * n));
    for (int64_t p = 0; p < depth; ++p) {
      const int64_t q = first + p;
      for (int64_t j = 0; j < n; ++j) {
        packed[static_cast<size_t>(p * n + j)] =
            transpose_b ? b.data[j * b.row + q] : b.data[q * b.row + j];
      }
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < depth; ++p) {
        const int64_t q = first + p;
        const float element =
            transpose_a ? a.data[q * a.row + i] : a.data[i * a.row + q];
        AddScaledRow(n, alpha * element, packed.data() + p * n, c + i * row_c);
      }
    }
  }
}

void PinBlasThreads() {}

std::string BlasName() { return "plain loops"; }

}  // namespace tributary
