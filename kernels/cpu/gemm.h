// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/product_precision.h"

namespace tributary {

// A matrix inside a larger one. Consecutive rows are `row` elements apart.
struct MatrixView {
  const float* data = nullptr;
  int64_t row = 0;
};

// c = alpha op(a) op(b) + beta c, row-major; op(a): [m, k], op(b): [k, n].
// Consecutive rows of c are row_c elements apart. OpenBLAS where the build has
// it (gemm_openblas.cc), else plain loops (gemm_reference.cc).
void CpuGemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
             int64_t k, float alpha, MatrixView a, MatrixView b, float beta,
             float* c, int64_t row_c);

// As above, with operands first rounded to `precision` (gemm_bfloat16.cc).
void CpuProduct(ProductPrecision precision, bool transpose_a, bool transpose_b,
                int64_t m, int64_t n, int64_t k, float alpha, MatrixView a,
                MatrixView b, float beta, float* c, int64_t row_c);

// Pins BLAS to one thread. Sums then have one order, and the program's threads
// do not compete with BLAS threads for cores.
void PinBlasThreads();

// Names the library, its version, the kernels that it chose for this processor
// and the number of its threads.
std::string BlasName();

}  // namespace tributary
