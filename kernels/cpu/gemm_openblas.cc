#include <cblas.h>

#include <algorithm>
#include <limits>

#include "common/check.h"
#include "kernels/cpu/gemm.h"

namespace tributary {
namespace {

blasint ToBlas(int64_t extent) {
  TRIBUTARY_CHECK(extent >= 0 && extent <= std::numeric_limits<blasint>::max());
  return static_cast<blasint>(extent);
}

}  // namespace

void CpuGemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
             int64_t k, float alpha, const float* a, const float* b, float beta,
             float* c) {
  if (m == 0 || n == 0) return;
  const int64_t row_a = std::max<int64_t>(1, transpose_a ? m : k);
  const int64_t row_b = std::max<int64_t>(1, transpose_b ? k : n);
  cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
              transpose_b ? CblasTrans : CblasNoTrans, ToBlas(m), ToBlas(n),
              ToBlas(k), alpha, a, ToBlas(row_a), b, ToBlas(row_b), beta, c,
              ToBlas(n));
}

void PinBlasThreads() { openblas_set_num_threads(1); }

}  // namespace tributary
