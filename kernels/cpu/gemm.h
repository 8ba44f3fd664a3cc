#pragma once

#include <cstdint>
#include <string>

#include "kernels/product_precision.h"

namespace tributary {

// c = alpha op(a) op(b) + beta c, row-major and contiguous; op(a): [m, k],
// op(b): [k, n]. OpenBLAS where the build has it (gemm_openblas.cc), else plain
// loops (gemm_reference.cc).
void CpuGemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
             int64_t k, float alpha, const float* a, const float* b, float beta,
             float* c);

// A matrix within a larger one: rows are `row` elements apart.
struct MatrixView {
  const float* data = nullptr;
  int64_t row = 0;
};
// The same on such parts; c's rows are row_c apart.
void CpuGemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
             int64_t k, float alpha, MatrixView a, MatrixView b, float beta,
             float* c, int64_t row_c);

// The same with operands rounded to `precision` first (gemm_bfloat16.cc).
void CpuProduct(ProductPrecision precision, bool transpose_a, bool transpose_b,
                int64_t m, int64_t n, int64_t k, float alpha, MatrixView a,
                MatrixView b, float beta, float* c, int64_t row_c);

// Pins BLAS to one thread: sums are then taken in one order, and threads of the
// program don't fight over the cores.
void PinBlasThreads();

// Which products these are: the library, its version and the kernels that it
// has chosen for this processor.
std::string BlasName();

}  // namespace tributary
