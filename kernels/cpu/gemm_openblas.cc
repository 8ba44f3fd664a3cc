// SPDX-License-Identifier: Apache-2.0
#include <cblas.h>

#include <algorithm>
#include <limits>
#include <string>

#include "common/base/check.h"
#include "kernels/cpu/gemm.h"

namespace tributary {
namespace {

blasint ToBlas(int64_t extent) {
  TRIBUTARY_CHECK(extent >= 0 && extent <= std::numeric_limits<blasint>::max());
  return static_cast<blasint>(extent);
}

}  // namespace

void CpuGemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
             int64_t k, float alpha, MatrixView a, MatrixView b, float beta,
             float* c, int64_t row_c) {
  if (m == 0 || n == 0) return;
  cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
              transpose_b ? CblasTrans : CblasNoTrans, ToBlas(m), ToBlas(n),
              ToBlas(k), alpha, a.data, ToBlas(std::max<int64_t>(1, a.row)),
              b.data, ToBlas(std::max<int64_t>(1, b.row)), beta, c,
              ToBlas(row_c));
}

void PinBlasThreads() { openblas_set_num_threads(1); }

std::string BlasName() {
  const int threads = openblas_get_num_threads();
  return std::string(openblas_get_config()) + ", kernels " +
         openblas_get_corename() + ", " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
}

}  // namespace tributary
