// SPDX-License-Identifier: Apache-2.0
// bfloat16 products on a processor without bfloat16 instructions: operands are
// rounded into temporary memory, and float32 holds their products exactly.
#include <vector>

#include "kernels/bfloat16_math.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vectorize.h"

namespace tributary {
namespace {

TRIBUTARY_CLONES void RoundRow(int64_t n, const float* x, float* y) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = RoundToBfloat16(x[i]);
}

// Rounds the matrix into `memory`, without gaps between rows.
MatrixView Rounded(int64_t rows, int64_t cols, MatrixView x,
                   std::vector<float>* memory) {
  memory->resize(static_cast<size_t>(rows * cols));
  for (int64_t r = 0; r < rows; ++r) {
    RoundRow(cols, x.data + r * x.row, memory->data() + r * cols);
  }
  return {memory->data(), cols};
}

}  // namespace

void CpuProduct(ProductPrecision precision, bool transpose_a, bool transpose_b,
                int64_t m, int64_t n, int64_t k, float alpha, MatrixView a,
                MatrixView b, float beta, float* c, int64_t row_c) {
  if (precision == ProductPrecision::kBfloat16) {
    static thread_local std::vector<float> of_a, of_b;
    a = Rounded(transpose_a ? k : m, transpose_a ? m : k, a, &of_a);
    b = Rounded(transpose_b ? n : k, transpose_b ? k : n, b, &of_b);
  }
  CpuGemm(transpose_a, transpose_b, m, n, k, alpha, a, b, beta, c, row_c);
}

}  // namespace tributary
